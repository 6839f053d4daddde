"""A batch of messages from a queue: their contents, and which of them to deliver again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from functions.decisions.messages import (
    Arrival,
    Continuation,
    JobEnded,
    NotUnderstood,
    Reminder,
    arrivals_in,
    by_run,
)
from functions.telemetry import log_problem


class Batch:
    """The messages, by kind."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.ended_jobs: list[JobEnded] = []
        self.reminders: list[Reminder] = []
        self.continuations: list[Continuation] = []
        self.attempt = ""
        self._messages: dict[Hashable, set[str]] = {}
        self._again: set[str] = set()

    def by_run(self) -> Iterator[tuple[str, list[Arrival]]]:
        """Yield each run with its arrivals."""
        yield from by_run(self.arrivals).items()

    @contextmanager
    def seen_again_if_it_fails(self, about: Hashable) -> Iterator[None]:
        """Request redelivery of only the messages about this if the block raises."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - no failure may affect other messages
            log_problem(f"{about} could not be recorded", problem)
            self._again |= self._messages.get(about, set())

    def answer(self) -> dict[str, Any]:
        """Return the messages to deliver again, in the form that Lambda expects."""
        return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in sorted(self._again)]}

    def _add(self, message: dict[str, Any]) -> None:
        identifier = message["messageId"]
        try:
            entries = arrivals_in(message["body"])
        except NotUnderstood as problem:
            log_problem("A message was not understood; it goes to the dead letters", problem)
            self._again.add(identifier)
            return
        received = message.get("attributes", {}).get("ApproximateReceiveCount", "1")
        is_own = any(isinstance(entry, Reminder | Continuation) for entry in entries)
        if received != "1" or is_own:
            self.attempt = max(self.attempt, f"{identifier}-{received}")
        for entry in entries:
            match entry:
                case Arrival():
                    self.arrivals.append(entry)
                case JobEnded():
                    self.ended_jobs.append(entry)
                case Reminder():
                    self.reminders.append(entry)
                case Continuation():
                    self.continuations.append(entry)
            about = entry.run if isinstance(entry, Arrival) else entry
            self._messages.setdefault(about, set()).add(identifier)


def read_batch(event: dict[str, Any]) -> Batch:
    """Return the contents of the event's messages."""
    batch = Batch()
    for message in event["Records"]:
        batch._add(message)
    return batch
