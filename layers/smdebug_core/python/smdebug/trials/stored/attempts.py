"""The attempts of a training: which of them wrote a step, and which steps a reader sees.

A training that is started again writes to the place of its run. Steps that it saves again replace the
earlier files; the others remain. An attempt that resumes at a step keeps what earlier attempts saved below
it. One that starts at its initial step hides all of it. Until an attempt has saved a step, it hides nothing.

The application follows the same rule in `functions/evaluation/run_history.py`, which reads the step index
backwards, and takes the step at which an attempt resumed from here (`AttemptId.named_in`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from smdebug.amounts import counted

RUN_ID, TRAINING_RUN, RESUMED_AT = "run_id", "training_run", "resumed_at"
ENDED, OPEN, INTERRUPTED = "ended", "open", "interrupted"


class AttemptId(NamedTuple):
    """The attempt that wrote a file, as the file names it; old runs name none."""

    run_id: str | None = None
    training_run: int = 0
    resumed_at: int | None = None

    @property
    def key(self) -> _Key:
        """What the files of one attempt have in common: workers may resume at different steps."""
        return self.run_id, self.training_run

    @classmethod
    def named_in(cls, meta: Mapping[str, Any]) -> AttemptId:
        """Return the attempt that an index file or a collections file names in its `meta`."""
        run_id, number, at = meta.get(RUN_ID), meta.get(TRAINING_RUN), meta.get(RESUMED_AT)
        return cls(
            run_id if type(run_id) is str else None,
            number if type(number) is int and number >= 0 else 0,
            at if type(at) is int and at >= 0 else None,
        )


class SavedStep(Protocol):
    """The facts about a worker's files of one step that decide whether they are shown."""

    @property
    def step(self) -> int: ...
    @property
    def worker(self) -> str: ...
    @property
    def saved_at(self) -> float | None: ...
    @property
    def attempt(self) -> AttemptId: ...


W = TypeVar("W", bound=SavedStep)


@dataclass(frozen=True)
class Attempt:
    """One start of a training, as far as its files still exist."""

    number: int
    run_id: str | None
    first_step: int
    last_step: int
    num_steps: int
    workers: tuple[str, ...]
    #: When its first and last remaining step was saved, in seconds since 1970; None in old runs.
    first_saved: float | None
    last_saved: float | None
    #: `ended` with an end marker, `interrupted` if another attempt followed, otherwise `open`.
    outcome: str
    #: The step from which on it hides the steps of earlier attempts.
    hides_from: int
    #: Those of its steps that a later attempt hides.
    hidden_steps: int = 0

    def __str__(self) -> str:
        parts = [_steps_of(self)]
        if self.hidden_steps:
            parts.append(f"{self.hidden_steps} of them hidden by a later attempt")
        parts += [counted(len(self.workers), "worker"), self.outcome]
        if self.last_saved is not None:
            parts.append(f"last saved {self.last_saved_moment()}")
        return f"attempt {self.number}: {', '.join(parts)}"

    def last_saved_moment(self) -> str:
        """Return when its last step was saved, in words; empty if that was not recorded."""
        return "" if self.last_saved is None else _moment(self.last_saved)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "workers": list(self.workers)}


def hidden_from(starts: Sequence[int]) -> list[int | None]:
    """Return from which step on later attempts hide each attempt; None for the last one.

    `starts` are the first steps of all attempts, in order.
    """
    found: list[int | None] = []
    lowest: int | None = None
    for start in reversed(starts):
        found.append(lowest)
        lowest = start if lowest is None else min(lowest, start)
    return found[::-1]


_Key = tuple[str | None, int]
_NEVER = 1 << 63


class _Files:
    """The combined facts in the files of one attempt."""

    def __init__(self) -> None:
        self.steps: set[int] = set()
        self.workers: set[str] = set()
        self.times: list[float] = []
        self.resumed_at: list[int] = []

    @property
    def start(self) -> int:
        """The first step that the attempt ran."""
        return min((*self.steps, *self.resumed_at), default=_NEVER)

    def add(self, written: SavedStep) -> None:
        self.steps.add(written.step)
        self.workers.add(written.worker)
        if written.saved_at is not None:
            self.times.append(written.saved_at)
        if written.attempt.resumed_at is not None:
            self.resumed_at.append(written.attempt.resumed_at)


class Attempts:
    """The attempts in the files of a run, in order, and what each hides."""

    def __init__(
        self,
        at: Mapping[int, Mapping[str, Any]],
        newest: AttemptId | None = None,
        *,
        ended: bool = False,
    ):
        self._newest, self._ended = newest, ended
        by_name: defaultdict[_Key, _Files] = defaultdict(_Files)
        for written in _all(at):
            by_name[written.attempt.key].add(written)
        self._keys = _in_order(by_name, newest)
        self._place = {key: place for place, key in enumerate(self._keys)}
        self._numbers = _numbers(self._keys)
        self._named = [by_name[key] for key in self._keys]
        self._files = [_Files() for _ in self._keys]
        for written in _all(at):
            self._files[self._place_of(written)].add(written)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the attempts, in order."""
        return tuple(attempt.number for attempt in self.all())

    def all(self) -> tuple[Attempt, ...]:
        """Return the attempts, in order."""
        hidden = hidden_from([of.start for of in self._files])
        return tuple(self._attempt(place, hidden[place]) for place, of in enumerate(self._files) if of.steps)

    def borders(self, number: int | None = None) -> dict[_Key, int | None]:
        """Return, by attempt, the step from which on a reader of attempt `number` sees nothing of it."""
        last = len(self._keys) - 1 if number is None else self._numbers.index(number)
        hidden = hidden_from([of.start for of in self._files[: last + 1]])
        return {key: hidden[place] if place <= last else 0 for place, key in enumerate(self._keys)}

    def shown(
        self, at: Mapping[int, Mapping[str, W]], number: int | None = None
    ) -> dict[int, Mapping[str, W]]:
        """Return what a reader of that attempt sees, of the newest one by default."""
        last = len(self._keys) - 1 if number is None else self._numbers.index(number)
        hidden = hidden_from([of.start for of in self._files[: last + 1]])
        found: dict[int, Mapping[str, W]] = {}
        for step in sorted(at):
            workers = {}
            for name, written in at[step].items():
                place = self._place_of(written)
                border = hidden[place] if place <= last else 0
                if border is None or step < border:
                    workers[name] = written
            if workers:
                found[step] = workers
        return found

    def _place_of(self, written: SavedStep) -> int:
        """Return the place of the attempt in which a file was saved.

        A worker that joins a later attempt counts its own attempts from zero, so its file's time decides.
        """
        place = self._place[written.attempt.key]
        saved_at = written.saved_at
        if saved_at is not None:
            for later in range(len(self._named) - 1, place, -1):
                of = self._named[later]
                if written.worker not in of.workers and of.times and saved_at >= min(of.times):
                    return later
        return place

    def _attempt(self, place: int, hidden: int | None) -> Attempt:
        key, of = self._keys[place], self._files[place]
        was_followed = place < len(self._keys) - 1 or (self._newest is not None and self._newest.key != key)
        return Attempt(
            number=self._numbers[place],
            run_id=key[0],
            first_step=min(of.steps),
            last_step=max(of.steps),
            num_steps=len(of.steps),
            workers=tuple(sorted(of.workers)),
            first_saved=min(of.times, default=None),
            last_saved=max(of.times, default=None),
            outcome=INTERRUPTED if was_followed else ENDED if self._ended else OPEN,
            hides_from=of.start,
            hidden_steps=0 if hidden is None else sum(step >= hidden for step in of.steps),
        )


def _all(at: Mapping[int, Mapping[str, Any]]) -> Iterator[SavedStep]:
    for workers in list(at.values()):
        yield from workers.values()


def _in_order(files: Mapping[_Key, _Files], newest: AttemptId | None) -> list[_Key]:
    """Return the attempts as they followed each other: by training, and within it by number."""
    began: dict[str | None, float] = {}
    for (run_id, _), of in files.items():
        first = min(of.times, default=0.0)
        began[run_id] = min(first, began.get(run_id, first))
    if newest is not None and newest.run_id in began:
        began[newest.run_id] = float("inf")
    return sorted(files, key=lambda key: (began[key[0]], key[0] or "", key[1]))


def _numbers(keys: Iterable[_Key]) -> list[int]:
    """Number the attempts as their files do; another training at the same place continues the count."""
    numbers: list[int] = []
    base, last_run_id = 0, None
    for run_id, number in keys:
        if numbers and run_id != last_run_id:
            base = numbers[-1] + 1
        last_run_id = run_id
        numbers.append(base + number)
    return numbers


def _steps_of(attempt: Attempt) -> str:
    if attempt.num_steps == 1:
        return f"1 step ({attempt.first_step})"
    return f"{attempt.num_steps} steps ({attempt.first_step} to {attempt.last_step})"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
