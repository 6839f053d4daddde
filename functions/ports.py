"""What the functions ask of the world, in our words. Each method is one call.

AWS and memory, in `functions.adapters`, keep the same promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from smdebug.service.item_reader import Item, ItemReader


class Refused(Exception):
    """The condition of a write did not hold: somebody else was there in between. Look again."""


class TooMuch(Exception):
    """The service asks to slow down, or was not there; the same call may succeed later."""


@dataclass(frozen=True)
class Only:
    """What has to hold for a write to happen, all of it."""

    absent: bool = False  # there is no such item yet
    present: bool = False
    equal: Mapping[str, Any] = field(default_factory=dict)
    below: Mapping[str, Any] = field(default_factory=dict)  # the attribute is lower, or not there


ALWAYS = Only()


@dataclass(frozen=True)
class Change:
    """One of several writes that happen together: attributes that are set, or the item that goes."""

    pk: str
    sk: str
    set: Mapping[str, Any] = field(default_factory=dict)
    delete: bool = False
    only: Only = ALWAYS


class ItemStore(ItemReader, Protocol):
    """A table of items under a partition key `pk` and a sort key `sk`. Reads see every earlier write."""

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        """Write the item, replacing what was there. `Refused` if `only` does not hold."""

    def update(
        self,
        pk: str,
        sk: str,
        *,
        set: Mapping[str, Any] | None = None,
        set_once: Mapping[str, Any] | None = None,
        add: Mapping[str, Any] | None = None,
        put_in: Mapping[str, Mapping[str, Any]] | None = None,
        remove_from: Mapping[str, Iterable[str]] | None = None,
        remove: Sequence[str] = (),
        only: Only = ALWAYS,
    ) -> Item:
        """Change attributes, all or none, and give back the whole item as it is then.

        `set_once` sets what is not there yet; `add` adds to a number or unites sets; `put_in` and
        `remove_from` change entries of a map that exists. `Refused` if `only` does not hold.
        """

    def delete(self, pk: str, sk: str, only: Only = ALWAYS) -> None:
        """Remove the item; nothing happens if there is none. `Refused` if `only` does not hold."""

    def change_together(self, changes: Sequence[Change]) -> None:
        """All of these, of different items, or none. `Refused` if the condition of one does not hold."""


class Workflow(Protocol):
    """The state machine that evaluates a step."""

    def start(self, name: str, request: Mapping[str, Any]) -> None:
        """Start an execution; one of that name that runs already will do."""


class CheckQueue(Protocol):
    """Messages to ourselves, seen after a while."""

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        """Leave a message that is delivered no sooner than that (900 s at most)."""


class Schedules(Protocol):
    """One-shot wake-ups, one per run."""

    def wake(self, run: str, *, at: float) -> None:
        """Call the watch handler for the run at that time, replacing any earlier request."""


class Listed(Protocol):
    """An object as a listing tells of it."""

    @property
    def key(self) -> str: ...
    @property
    def modified(self) -> float: ...


class Objects(Protocol):
    """The objects of a bucket, by full key."""

    def read(self, bucket: str, key: str) -> bytes:
        """The object. `ObjectMissing`, `AccessDenied`, `StorageUnavailable`."""

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterable[Listed]:
        """The objects below a prefix whose keys sort after `after`, in order."""


class Lender(Protocol):
    """Credentials for those who are not trusted."""

    def lend(self, name: str, policy: Mapping[str, Any], *, seconds: int) -> Mapping[str, str]:
        """Credentials which allow no more than the policy, for so long, by their names in an environment."""


class Clock(Protocol):
    """The time of day, in seconds."""

    def now(self) -> float: ...


class NotDone(Exception):
    """The service will not do it, and says why in a sentence; asking again will not help."""


class TrainingJobs(Protocol):
    """The training jobs of SageMaker."""

    def in_progress(self, prefix: str) -> list[str]:
        """The names of the jobs in progress that begin so, 100 at most. `TooMuch`, `NotDone`."""

    def stop(self, name: str) -> None:
        """Have the job stop; one that is stopping will do. `TooMuch`, `NotDone`."""


class ControlObjects(Protocol):
    """What a run is told, beside it."""

    def write_stop(self, run: str, body: bytes) -> None:
        """Ask the hook of the run to stop the training. `TooMuch`, `NotDone`."""


class Topic(Protocol):
    """Where people are told by e-mail and SMS, as far as they have subscribed."""

    def publish(self, *, subject: str, email: str, sms: str, to: str | None = None) -> None:
        """Tell everybody, or just the subscriber with that address or number. `TooMuch`, `NotDone`."""


class ActionOutcomes(Protocol):
    """What became of the actions of findings, kept with the rule that found them."""

    def claim(self, finding_id: str, deed_id: str, *, by: str, now: float, until: float) -> bool:
        """May this invocation do it? Nobody else may until then, unless it comes again itself."""

    def settled(self, run: str, group: str, rule_id: str, finding_id: str) -> frozenset[str]:
        """The ids of the outcomes of that finding that need not be tried again."""

    def record_action(
        self,
        run: str,
        group: str,
        rule_id: str,
        outcome: Mapping[str, Any],
        outbox: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Keep the outcome, in place of one of the same id, and what is to be published of it."""
