"""A queue like those of SQS, in memory, with its owner's clock.

`tests/functions/adapters/test_queue.py` holds it and moto's SQS to the same promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count


@dataclass(eq=False)
class Message:
    """A message in the queue: hidden while it is delayed, or being handled."""

    id: str
    body: str
    visible_at: float
    received: int = 0
    receipts: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Received:
    """A message as its receiver sees it."""

    id: str
    body: str
    received: int
    receipt: str


class MemoryQueue:
    """Standard, not FIFO: messages come in any order, and again, until they are deleted."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        visibility: float = 30.0,
        receives: int | None = None,
        dead_letters: MemoryQueue | None = None,
    ):
        self._now = now
        self._visibility = visibility
        self._receives = receives  # how often a message is handed out before it is a dead letter
        self._dead_letters = dead_letters
        self._messages: dict[str, Message] = {}
        self._by_receipt: dict[str, Message] = {}
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._messages)

    def send(self, body: str, delay: float = 0.0) -> str:
        """Send a message that is invisible until the delay is over; return its id."""
        return self._take(Message(f"m{next(self._numbers)}", body, self._now() + delay))

    def visible(self) -> list[str]:
        """The ids of what could be received now."""
        now = self._now()
        return [message.id for message in self._messages.values() if message.visible_at <= now]

    def next_visible_at(self) -> float:
        """When there will be something to receive; infinity if nothing is here."""
        return min((message.visible_at for message in self._messages.values()), default=float("inf"))

    def receive(self, ids: Iterable[str] | None = None, *, at_most: int = 10) -> list[Received]:
        """Some of what is visible, which is hidden from now on; or those, chosen by a scheduler."""
        received: list[Received] = []
        for chosen in list(self.visible() if ids is None else ids):
            message = self._messages[chosen]
            if message.received == self._receives and self._dead_letters is not None:
                del self._messages[chosen]
                message.visible_at = self._now()
                self._dead_letters._take(message)
                continue
            if len(received) == at_most:
                break
            message.received += 1
            message.visible_at = self._now() + self._visibility
            receipt = f"{chosen}-{next(self._numbers)}"
            message.receipts.add(receipt)
            self._by_receipt[receipt] = message
            received.append(Received(message.id, message.body, message.received, receipt))
        return received

    def delete(self, receipt: str) -> None:
        """The receiver has handled the message, even if it was delivered again since."""
        self._messages.pop(self._by_receipt[receipt].id, None)

    def show_again(self, receipt: str, after: float) -> None:
        """Make a received message visible after that time, instead of the usual one."""
        message = self._by_receipt[receipt]
        if message.id in self._messages:
            message.visible_at = self._now() + after

    def redrive(self, to: MemoryQueue) -> None:
        """All messages go to another queue, as if they had just been sent."""
        for message in self._messages.values():
            to._take(Message(message.id, message.body, to._now()))
        self._messages.clear()

    def _take(self, message: Message) -> str:
        self._messages[message.id] = message
        return message.id
