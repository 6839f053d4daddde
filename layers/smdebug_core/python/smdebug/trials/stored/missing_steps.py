"""The steps of a run that are missing: those that could not be written, and those whose index file is gone.

Each index file names the step that its worker wrote before it, and how many there were; a worker's closing
note names the last one. So a file that is gone leaves a gap, which is seen as soon as a later file exists.
Files and notes also say which steps could not be written.

A step that a later attempt of the training hides is not missing. Neither is the beginning of a run on S3,
where objects expire. Files of the old library name nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from smdebug.amounts import counted
from smdebug.files.collections_file import ClosingNote, LostSteps
from smdebug.files.names import StepFile, index_key
from smdebug.trials.stored.attempts import AttemptId, SavedStep


class WrittenStep(SavedStep, Protocol):
    """What an index file says of the steps before it."""

    @property
    def previous_step(self) -> int | None: ...
    @property
    def steps_before(self) -> int | None: ...
    @property
    def lost_steps(self) -> LostSteps | None: ...


@dataclass(frozen=True)
class Gap:
    """Steps of one worker that are missing, for one reason."""

    worker: str
    count: int
    """How many; at least so many if `last` is None."""
    first: int
    """The first step that may be missing, and the first one that is if there is only one."""
    last: int | None
    """The last of them; None if nothing was saved from `first` on."""
    reason: str = ""
    """Why they could not be written; empty if they were, and their index files are gone."""

    @property
    def was_written(self) -> bool:
        return not self.reason

    @property
    def file(self) -> str:
        """The index file that shows the gap, or the first one that was never written."""
        shows = self.last if self.was_written and self.last is not None else self.first
        return index_key(shows, self.worker)

    def holds(self, named: StepFile) -> bool:
        """Return whether that worker's step is, or may be, one of them."""
        return (
            named.worker == self.worker
            and self.first <= named.step
            and (self.last is None or named.step <= self.last)
        )

    @property
    def problem(self) -> str:
        """What is missing, in words, without the worker."""
        steps = counted(self.count, "step")
        if self.last is None:
            return f"at least {steps} could not be written, from step {self.first} on: {self.reason}"
        where = f"step {self.last}" if self.count == 1 else f"{steps} from {self.first} to {self.last}"
        if self.reason:
            return f"{where} could not be written: {self.reason}"
        return f"{where} {'was' if self.count == 1 else 'were'} saved, and the index file is gone"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(vars(self))


@dataclass(frozen=True)
class MissingSteps:
    """The steps of a run that are missing, and the workers of an ended run that left no closing note."""

    gaps: tuple[Gap, ...] = ()
    not_closed: tuple[str, ...] = ()
    """Their last steps may be missing: the run has ended, and they do not say which step was their last."""

    def __bool__(self) -> bool:
        return bool(self.gaps or self.not_closed)

    @property
    def count(self) -> int:
        """The number of steps that are missing, as far as it is known."""
        of_workers: Counter[str] = Counter()
        for gap in self.gaps:
            of_workers[gap.worker] += gap.count
        named = {gap.last for gap in self.gaps if gap.count == 1}
        return max((len(named), *of_workers.values()))

    @property
    def first(self) -> int | None:
        """The first step that is or may be missing."""
        return min((gap.first for gap in self.gaps), default=None)

    def __str__(self) -> str:
        parts = []
        if self.gaps:
            first = min(self.gaps, key=lambda gap: gap.first)
            how_many = "at least " if any(gap.last is None for gap in self.gaps) else ""
            steps = counted(self.count, "step")
            where = f"first: {first.first}" if first.count == 1 or first.reason else f"from {first.first} on"
            why = f": {first.reason}" if first.reason else ""
            parts.append(f"{how_many}{steps} {'is' if self.count == 1 else 'are'} missing ({where}){why}")
        if self.not_closed:
            parts.append(
                f"the run ended without a closing note of {', '.join(self.not_closed[:8])}, "
                "so its last steps may be missing"
            )
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "count": self.count,
            "first": self.first,
            "gaps": [gap.to_dict() for gap in self.gaps],
            "not_closed": list(self.not_closed),
        }


_MOST_ASKED_FOR = 100
NOTHING_MISSING = MissingSteps()


@dataclass(frozen=True)
class Worked:
    """The `_meta` of a worker's collections file: its attempt, and its closing note if it has closed."""

    attempt: AttemptId
    note: ClosingNote | None


@dataclass(frozen=True)
class Known:
    """What is known of a run beside the index files that were read."""

    workers: Mapping[str, Worked] = field(default_factory=dict)
    """By worker, those whose collections file can be read."""
    newest: AttemptId | None = None
    ended: bool = False
    unreadable: Collection[StepFile] = frozenset()
    """Index files that exist and are damaged."""
    first: int = 0
    """The first step that was read, and the end of the range."""
    end: int | None = None
    may_expire: bool = False


def missing_in(
    at: Mapping[int, Mapping[str, WrittenStep]],
    borders: Mapping[Any, int | None],
    known: Known,
) -> MissingSteps:
    """Return what is missing from a run, given its index files by step and worker.

    `borders` has, by the key of an attempt, the step from which on later attempts hide it.
    """
    by_worker: defaultdict[str, list[WrittenStep]] = defaultdict(list)
    for step in sorted(at):
        for worker, written in at[step].items():
            by_worker[worker].append(written)
    gaps: list[Gap] = []
    for worker in sorted(by_worker.keys() | known.workers.keys()):
        gaps += _of_worker(worker, by_worker[worker], borders, known)
    not_closed: tuple[str, ...] = ()
    if known.ended:
        not_closed = tuple(
            worker
            for worker, worked in sorted(known.workers.items())
            if worked.note is None
            and worked.attempt.run_id is not None
            and (known.newest is None or worked.attempt.key == known.newest.key)
        )
    return MissingSteps(tuple(gaps), not_closed)


def _of_worker(
    worker: str, files: list[WrittenStep], borders: Mapping[Any, int | None], known: Known
) -> Iterator[Gap]:
    """Yield the gaps of one worker, whose files are given in order of their steps."""
    steps = {written.step for written in files}
    damaged = sorted(named.step for named in known.unreadable if named.worker == worker)
    by_attempt: defaultdict[Any, list[WrittenStep]] = defaultdict(list)
    for written in files:
        by_attempt[written.attempt.key].append(written)
    worked = known.workers.get(worker)
    note = worked.note if worked is not None else None
    closed = worked.attempt.key if worked is not None and note is not None else None
    if closed is not None:
        by_attempt.setdefault(closed, [])
    first_of_all = min(steps, default=None)

    def is_gone(step: int, border: int | None) -> bool:
        return (
            step not in steps
            and step not in damaged
            and (border is None or step < border)
            and known.first <= step
            and (known.end is None or step < known.end)
        )

    def gap(before: WrittenStep | None, last: int, written: int | None) -> Iterator[Gap]:
        """The gap after `before` that ends with step `last`, up to which `written` steps were written."""
        if before is None and known.may_expire and (first_of_all is None or first_of_all > last):
            return
        after = -1 if before is None else before.step
        count, first = 1, last
        passed = -1 if before is None else before.steps_before
        if written is not None and passed is not None and (before is not None or not known.first):
            there = sum(after < step < last for step in damaged)
            count = max(1, written - passed - 1 - there)
            if count > 1:
                first = min(max(after + 1, known.first), last)
        yield Gap(worker, count, first, last)

    for key, of_attempt in by_attempt.items():
        border = borders.get(key)
        before: WrittenStep | None = None
        for written in of_attempt:
            previous = written.previous_step
            if previous is not None and previous < written.step and is_gone(previous, border):
                yield from gap(before, previous, written.steps_before)
            before = written
        if key == closed and note is not None:
            if note.last_step is not None and is_gone(note.last_step, border):
                yield from gap(before, note.last_step, note.steps_written)
            lost = note.lost
        else:
            lost = _lost_by(of_attempt, border)
        if lost is not None and _is_shown(lost, border, known):
            reason = lost.reason or "the reason is not known"
            yield Gap(worker, lost.count, lost.first or 0, lost.last, reason)


def _is_shown(lost: LostSteps, border: int | None, known: Known) -> bool:
    ends = [end for end in (border, known.end) if end is not None]
    is_before = lost.last is not None and lost.last < known.first
    return not is_before and all((lost.first or 0) < end for end in ends)


def _lost_by(files: Iterable[WrittenStep], border: int | None) -> LostSteps | None:
    """Return what the last file that is shown says was lost."""
    lost = None
    for written in files:
        if border is None or written.step < border:
            lost = written.lost_steps or lost
    return lost


def without_late(missing: MissingSteps, exists: Callable[[str], bool]) -> MissingSteps:
    """Leave out gaps whose last index file exists after all, since it came after the listing."""
    gaps = list(missing.gaps)
    for gap in missing.gaps[:_MOST_ASKED_FOR]:
        if gap.was_written and gap.last is not None and exists(gap.file):
            gaps.remove(gap)
    return MissingSteps(tuple(gaps), missing.not_closed)
