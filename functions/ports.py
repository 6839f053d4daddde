"""The ports: the services that the functions need, in our own terms. Each method is one call.

AWS and memory, in `functions.adapters`, keep the same promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from functions.decisions.job_ownership import JobClaims
from functions.decisions.posting.posts import Answer
from smdebug.exceptions import DamagedFile
from smdebug.service.step_index.item_reader import Item, ItemReader


class Refused(Exception):
    """The condition of a write did not hold, as another process wrote first: read again."""

    def __init__(self, problem: str = "", found: Sequence[Item] = ()):
        super().__init__(problem)
        self.found = found  # the items that were there instead


class TooMuch(Exception):
    """The service throttles or cannot be reached; the same call may succeed later."""


@dataclass(frozen=True)
class Only:
    """The conditions of a write; all have to hold."""

    absent: bool = False  # there is no such item yet
    present: bool = False
    equal: Mapping[str, Any] = field(default_factory=dict)
    below: Mapping[str, Any] = field(default_factory=dict)  # the attribute is lower, or not there


ALWAYS = Only()
PRESENT = Only(present=True)


@dataclass(frozen=True)
class ItemChange:
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
        """Change attributes, all or none, and return the whole item as changed.

        `set_once` sets what is not there yet; `add` adds to a number or unites sets; `put_in` and
        `remove_from` change entries of a map that exists. `Refused` if `only` does not hold.
        """

    def delete(self, pk: str, sk: str, only: Only = ALWAYS) -> None:
        """Remove the item; nothing happens if there is none. `Refused` if `only` does not hold."""

    def change_together(self, changes: Sequence[ItemChange]) -> None:
        """All of these, of different items, or none. `Refused` if the condition of one does not hold."""


class Workflow(Protocol):
    """The state machine that evaluates a step."""

    def start(self, name: str, request: Mapping[str, Any]) -> None:
        """Start an execution, unless one of that name is running."""


class CheckQueue(Protocol):
    """Delayed messages to ourselves: to check a run, or to finish it."""

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        """Leave a message that is delivered no sooner than that (900 s at most, from a queue)."""


class Schedules(CheckQueue, Protocol):
    """One-shot wake-ups of the watch handler. A message that is left may come up to a minute later."""

    def wake(self, run: str, *, at: float) -> None:
        """Look for silence of the run at that time, replacing any earlier request."""


class Listed(Protocol):
    """An object in a listing."""

    @property
    def key(self) -> str: ...
    @property
    def modified(self) -> float: ...


LARGEST_OBJECT = 12 << 20  # bytes: parsed, it takes up to 24 times as much of 512 MB


class Objects(Protocol):
    """The objects of a bucket, by full key."""

    def read(self, bucket: str, key: str) -> bytes:
        """The object. `ObjectMissing`, `AccessDenied`, `StorageUnavailable`; `DamagedFile` if too large."""

    def modified(self, bucket: str, key: str) -> float | None:
        """Return when the object was written; None if there is none."""

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterable[Listed]:
        """The objects below a prefix whose keys sort after `after`, in order."""


def too_large(place: str, size: int) -> DamagedFile:
    """The error of an object that is not read, as it could use up the memory of all runs in a batch."""
    return DamagedFile(place, f"it has {size} bytes, and the functions read at most {LARGEST_OBJECT}")


class Readers(Protocol):
    """Functions that read files of runs for the one that evaluates."""

    @property
    def at_once(self) -> int:
        """How many of them one evaluation may have at work; 0 if there are none."""

    def ask(self, requests: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
        """Return the answer to each request, asked at the same time; None where there is none."""


class Lender(Protocol):
    """Credentials for functions that are not trusted."""

    def lend(self, name: str, policy: Mapping[str, Any], *, seconds: int) -> Mapping[str, str]:
        """Return credentials limited to the policy, for `seconds`, by environment variable."""


class Clock(Protocol):
    """The time of day, in seconds."""

    def now(self) -> float: ...


class NotDone(Exception):
    """The service refuses, for the reason in the text; a repeated call will not help."""


class TrainingJobs(Protocol):
    """The training jobs of SageMaker."""

    def in_progress(self, prefix: str) -> list[str]:
        """Return the names of up to 100 jobs in progress with that prefix. `TooMuch`, `NotDone`."""

    def claims_of(self, name: str) -> JobClaims:
        """Return what the job's description and tags say of the runs that it trains. `TooMuch`, `NotDone`."""

    def stop(self, name: str) -> None:
        """Stop the job, unless it is stopping already. `TooMuch`, `NotDone`."""


class BatchJobs(Protocol):
    """The jobs of AWS Batch."""

    def running(self, queue: str) -> list[JobClaims]:
        """Return what each running job of the queue says of the runs that it trains. `TooMuch`, `NotDone`."""

    def stop(self, job: str, *, reason: str) -> None:
        """Terminate the job; nothing happens if it has ended. `TooMuch`, `NotDone`."""


class ControlObjects(Protocol):
    """Control objects stored beside a run."""

    def write_stop(self, run: str, body: bytes) -> None:
        """Request that the hook of the run stop the training. `TooMuch`, `NotDone`."""

    def write_zoom(self, run: str, body: bytes) -> None:
        """Request that the hook of the run save whole tensors. `TooMuch`, `NotDone`."""


class Topic(Protocol):
    """Messages to the subscribers, by email and SMS."""

    def publish(self, *, subject: str, email: str, sms: str, to: str | None = None) -> None:
        """Send to all subscribers, or to the one with that address or number. `TooMuch`, `NotDone`."""


class Secrets(Protocol):
    """Secrets by name, with values that no other function reads."""

    def read(self, name: str, *, again: bool = False) -> str:
        """Return the value, which may be some minutes old unless `again`. `TooMuch`, `NotDone`."""


class Web(Protocol):
    """Services on the internet."""

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str]) -> Answer:
        """Post JSON; return the answer, or the kind of error without a text that has the URL."""


class ActionOutcomes(Protocol):
    """The outcomes of actions, kept with the rule whose findings requested them."""

    def claim(self, finding_id: str, deed_id: str, *, by: str, now: float, until: float) -> bool:
        """Claim the action for this invocation; return False while another one holds it."""

    def settled(self, run: str, group: str, rule_id: str, finding_id: str) -> frozenset[str]:
        """Return the ids of the finding's actions that are not to be tried again."""

    def record_action(
        self,
        run: str,
        group: str,
        rule_id: str,
        outcome: Mapping[str, Any],
        outbox: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Store the outcome, replacing one of the same id, and the event that reports it."""
