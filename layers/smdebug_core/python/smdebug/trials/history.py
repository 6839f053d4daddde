"""What came before a step, as a view of a run as of that step asks it: cheaply, and backwards.

The step index of the application answers such questions from its table. Here are the histories that need
none: one handed over as plain data, one that lists, and the two of them in a row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, Protocol

from smdebug.exceptions import SMDebugValueError
from smdebug.files.names import INDEX_FOLDER, STEPS_PER_INDEX_FOLDER, index_folder, step_file
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import Layout
from smdebug.storage import Storage

GLOBAL = ModeKeys.GLOBAL
UNREAD = ""


class StepSummary(NamedTuple):
    """One complete (or settled) step as the step index knows it.

    `layout` is the digest of what the step holds, as `AsOfTrial.look_at` told it. A step at which nobody
    has looked yet has none: its mode is not known either, and whoever wants more reads its index files.
    """

    step: int
    mode: ModeKeys
    mode_step: int
    workers: tuple[str, ...]
    layout: str = UNREAD

    @classmethod
    def unread(cls, step: int, workers: Iterable[str]) -> StepSummary:
        """Of this step it is only known who wrote it."""
        return cls(step, GLOBAL, step, tuple(workers))


class History(Protocol):
    """The steps of a run that came before. Each question is a cheap one to the step index.

    Steps with an unknown mode come with every mode: whoever asked finds out.
    """

    def at(self, step: int) -> StepSummary | None:
        """That step; None if it was skipped, or is not settled."""

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        """The steps below it, newest first, of one mode or all. Asked for page by page, as far as used."""

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        """The earliest step, of one mode or all; None if there is none, or if it would take long to find."""

    def layouts(self) -> Mapping[str, Layout]:
        """What steps hold, by digest."""


class MemoryHistory:
    """A history held in memory: all of it, or from the step `complete_from` on."""

    def __init__(
        self,
        summaries: Iterable[StepSummary] = (),
        layouts: Mapping[str, Layout] | Iterable[Layout] = (),
        *,
        complete_from: int = 0,
    ):
        self._steps = sorted(summaries, key=lambda one: one.step)
        self._numbers = [one.step for one in self._steps]
        told = layouts.values() if isinstance(layouts, Mapping) else layouts
        self._layouts = {layout.digest: layout for layout in told}
        #: From this step on nothing is missing; what was earlier is not told here.
        self.complete_from = complete_from

    @classmethod
    def recent(cls, history: History, through_step: int, steps: int) -> MemoryHistory:
        """The last so many steps of a history, up to and including `through_step`, to be handed on."""
        newest_first = history.before(through_step + 1)
        last = list(islice(newest_first, steps))
        is_all = len(last) < steps
        complete_from = 0 if is_all else last[-1].step if last else through_step + 1
        layouts = [one for one in history.layouts().values() if one.first_step <= through_step]
        return cls(last, layouts, complete_from=complete_from)

    def at(self, step: int) -> StepSummary | None:
        at = bisect_left(self._numbers, step)
        return self._steps[at] if self._numbers[at : at + 1] == [step] else None

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        for at in range(bisect_left(self._numbers, step) - 1, -1, -1):
            if _is_of(self._steps[at], mode):
                yield self._steps[at]

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        return next((one for one in self._steps if _is_of(one, mode)), None)

    def layouts(self) -> Mapping[str, Layout]:
        return self._layouts

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON. What many steps share is told once."""
        workers = list(dict.fromkeys(one.workers for one in self._steps))
        at = {names: position for position, names in enumerate(workers)}
        return {
            "complete_from": self.complete_from,
            "workers": [list(names) for names in workers],
            "steps": [
                [one.step, one.mode.name, one.mode_step, at[one.workers], one.layout]
                for one in self._steps
            ],
            "layouts": [
                {
                    "digest": layout.digest,
                    "names": list(layout.names),
                    "mode": layout.mode,
                    "first_step": layout.first_step,
                    "workers": list(layout.workers),
                }
                for layout in self._layouts.values()
            ],
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> MemoryHistory:
        """The history that `to_dict` told; `SMDebugValueError` if it did not."""
        try:
            workers = [tuple(map(_text, names)) for names in told["workers"]]
            steps = [
                StepSummary(
                    _number(step), ModeKeys[mode], _number(mode_step), workers[at], _text(layout)
                )
                for step, mode, mode_step, at, layout in told["steps"]
            ]
            layouts = [
                Layout(
                    _text(one["digest"]),
                    tuple(map(_text, one["names"])),
                    ModeKeys[one["mode"]].name,
                    _number(one["first_step"]),
                    tuple(map(_text, one["workers"])),
                )
                for one in told["layouts"]
            ]
            return cls(steps, layouts, complete_from=_number(told["complete_from"]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise SMDebugValueError(
                f"This is no history of a run as MemoryHistory.to_dict tells it: {error!r}"
            ) from error


class ListedHistory:
    """The steps through `through_step`, by listing the index folders, one at a time.

    For those who look further back than what they were handed, and may not ask the step index: each
    folder of a thousand steps costs a listing. What the steps hold is not told by a listing.
    """

    def __init__(self, storage: Storage, through_step: int):
        self._storage = storage
        self._through = through_step
        self._folders: OrderedDict[int, tuple[list[int], dict[int, tuple[str, ...]]]] = (
            OrderedDict()
        )
        self._first_key: str | None = None

    def at(self, step: int) -> StepSummary | None:
        if not 0 <= step <= self._through:
            return None
        _, listed = self._folders.get(step // STEPS_PER_INDEX_FOLDER, ([], {}))
        workers = listed.get(step)
        if workers is None:
            workers = _workers_by_step(self._keys(f"{index_folder(step)}{step:012}_")).get(step)
        return StepSummary.unread(step, workers) if workers else None

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        # Of none of them the mode is known, so all of them come.
        step = min(step, self._through + 1)
        newest = (step - 1) // STEPS_PER_INDEX_FOLDER
        self._folders.pop(newest, None)  # the run may have gone on; what lies before is as it was
        folder: int | None = newest
        while step > 0 and folder is not None and folder >= 0:
            steps, workers = self._in_folder(folder)
            for at in range(bisect_left(steps, step) - 1, -1, -1):
                yield StepSummary.unread(steps[at], workers[steps[at]])
            folder = self._folder_before(folder)

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        step = self._first_step()
        return self.at(step) if mode is None and step is not None else None

    def layouts(self) -> Mapping[str, Layout]:
        return {}

    def _keys(self, prefix: str) -> Iterator[str]:
        return (key for key in self._storage.list(prefix) if key.endswith(".json"))

    def _in_folder(self, folder: int) -> tuple[list[int], dict[int, tuple[str, ...]]]:
        known = self._folders.get(folder)
        if known is None:
            workers = _workers_by_step(self._keys(index_folder(folder * STEPS_PER_INDEX_FOLDER)))
            known = self._folders[folder] = (sorted(workers), workers)
            while len(self._folders) > 8:
                self._folders.popitem(last=False)
        self._folders.move_to_end(folder)
        return known

    def _folder_before(self, folder: int) -> int | None:
        """The nearest folder before it that holds something."""
        if folder > 0 and self._in_folder(folder - 1)[0]:
            return folder - 1
        high, reach = folder - 1, 1
        while not self._is_something_in(max(0, high - reach), high):
            if high <= reach:
                return None
            reach *= 2
        low = max(0, high - reach)
        while high - low > 1:  # something is in between: halve
            middle = (low + high) // 2
            if self._is_something_in(middle, high):
                low = middle
            else:
                high = middle
        return low

    def _is_something_in(self, first: int, end: int) -> bool:
        """Is there an index file in the folders from `first` up to, and without, `end`?"""
        earliest = self._first_step()
        if earliest is None or earliest >= end * STEPS_PER_INDEX_FOLDER:
            return False
        after, stop = (index_folder(at * STEPS_PER_INDEX_FOLDER) for at in (first, end))
        key = next(self._storage.list(INDEX_FOLDER, after), None)
        return key is not None and key < stop

    def _first_step(self) -> int | None:
        if self._first_key is None:
            self._first_key = next(self._keys(INDEX_FOLDER), "")
        name = step_file(self._first_key)
        return name.step if name and name.step <= self._through else None


class ChainedHistory:
    """What was handed over, and behind it another history for whatever lies further back."""

    def __init__(self, recent: MemoryHistory, older: History):
        self._recent = recent
        self._older = older

    def at(self, step: int) -> StepSummary | None:
        told_by = self._recent if step >= self._recent.complete_from else self._older
        return told_by.at(step)

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        border = self._recent.complete_from
        for one in self._recent.before(step, mode):
            if one.step < border:
                break
            yield one
        if border > 0:
            yield from self._older.before(min(step, border), mode)

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        return (self._older if self._recent.complete_from > 0 else self._recent).first(mode)

    def layouts(self) -> Mapping[str, Layout]:
        return {**self._older.layouts(), **self._recent.layouts()}


class RememberedHistory:
    """A history whose answers are remembered, and steps added that it does not tell of yet.

    Which step comes before which is kept as a chain, so that walking back a second time asks nothing, and
    walking on from where the first walk ended goes on with the page it had. Threads may share it.
    """

    KEPT = 50_000

    def __init__(self, history: History):
        self._history = history
        self._at: dict[int, StepSummary | None] = {}
        self._missed: list[int] = []
        self._previous: dict[tuple[ModeKeys | None, int], StepSummary | None] = {}
        self._asked_up_to = -1
        self._walks: dict[ModeKeys | None, _Walk] = {}
        self._workers: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._added: dict[int, StepSummary] = {}
        self._added_numbers: list[int] = []

    def add(self, summary: StepSummary) -> None:
        """A step that exists, whether the history knows it by now or not."""
        step = summary.step
        if step not in self._added:
            if step <= self._asked_up_to:  # something was said that this belies
                self.forget()
            self._added_numbers.insert(bisect_left(self._added_numbers, step), step)
            if len(self._added) >= self.KEPT:
                del self._added[self._added_numbers.pop(0)]
        self._added[step] = summary._replace(workers=self._shared(summary.workers))

    def forget(self) -> None:
        """Ask anew from here on. Steps that were added stay."""
        self._at.clear()
        self._missed.clear()
        self._previous.clear()
        self._walks.clear()
        self._workers.clear()
        self._asked_up_to = -1

    def forget_misses(self) -> None:
        """Ask again for steps that were not there."""
        for step in self._missed:
            self._at.pop(step, None)
        self._missed.clear()

    def at(self, step: int) -> StepSummary | None:
        added = self._added.get(step)
        if added is not None:
            return added
        if step not in self._at and self._note(step, self._history.at(step)) is None:
            self._missed.append(step)
        return self._at.get(step)

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        """As of `History`. One thread at a time may take the next."""
        while (previous := self._step_before(step, mode)) is not None:
            yield previous
            step = previous.step

    def layouts(self) -> Mapping[str, Layout]:
        return self._history.layouts()

    def _step_before(self, step: int, mode: ModeKeys | None) -> StepSummary | None:
        key = (mode, step)
        if key in self._previous:
            return self._previous[key]
        if len(self._previous) >= self.KEPT:
            self._previous.clear()
        found = self._previous[key] = self._found_before(step, mode)
        self._asked_up_to = max(self._asked_up_to, step - 1)
        return found

    def _found_before(self, step: int, mode: ModeKeys | None) -> StepSummary | None:
        added = self._added_before(step, mode)
        if added is not None and added.step == step - 1:  # there is no room for another
            return added
        walk = self._walks.get(mode)
        if walk is None or walk.at != step:
            walk = self._walks[mode] = _Walk(self._history.before(step, mode))
        told = walk.ahead()
        if told is None or (added is not None and added.step > told.step):
            found = added
        else:
            found = self._added.get(told.step) or self._note(told.step, told)
            walk.advance()
        walk.at = None if found is None else found.step
        return found

    def _added_before(self, step: int, mode: ModeKeys | None) -> StepSummary | None:
        for at in range(bisect_left(self._added_numbers, step) - 1, -1, -1):
            one = self._added[self._added_numbers[at]]
            if _is_of(one, mode):
                return one
        return None

    def _note(self, step: int, told: StepSummary | None) -> StepSummary | None:
        if told is not None:
            told = told._replace(workers=self._shared(told.workers))
        if len(self._at) >= self.KEPT:
            self._at.clear()
        self._at[step] = told
        self._asked_up_to = max(self._asked_up_to, step)
        return told

    def _shared(self, workers: tuple[str, ...]) -> tuple[str, ...]:
        if len(self._workers) > 1000:
            self._workers.clear()
        return self._workers.setdefault(workers, workers)


class _Walk:
    """How far a walk back through a history has come, and what it was told already of what follows."""

    def __init__(self, steps: Iterator[StepSummary]):
        self._steps = steps
        self._ahead: list[StepSummary | None] = []
        self.at: int | None = None

    def ahead(self) -> StepSummary | None:
        if not self._ahead:
            self._ahead.append(next(self._steps, None))
        return self._ahead[0]

    def advance(self) -> None:
        self._ahead.clear()


def _is_of(one: StepSummary, mode: ModeKeys | None) -> bool:
    return mode is None or one.mode is mode or one.layout == UNREAD


def _workers_by_step(keys: Iterable[str]) -> dict[int, tuple[str, ...]]:
    workers: dict[int, list[str]] = {}
    for name in filter(None, map(step_file, keys)):
        workers.setdefault(name.step, []).append(name.worker)
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    return {step: shared.setdefault(tuple(names), tuple(names)) for step, names in workers.items()}


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is no text")
    return value
