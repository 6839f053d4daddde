"""A history that lists the index folders, for views that may not query the step index."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from smdebug.files.names import INDEX_FOLDER, STEPS_PER_INDEX_FOLDER, index_folder, step_file
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import StepLayout
from smdebug.storage import Storage
from smdebug.trials.past.history import StepSummary


class ListedHistory:
    """The steps up to `through_step`, from listings of the index folders, one at a time.

    Each folder of a thousand steps costs a listing, which does not say what the steps hold.
    """

    def __init__(self, storage: Storage, through_step: int):
        self._storage = storage
        self._through = through_step
        self._folders: OrderedDict[int, tuple[list[int], dict[int, tuple[str, ...]]]] = OrderedDict()
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
        # No mode is known, so every step may be of this one.
        step = min(step, self._through + 1)
        newest = (step - 1) // STEPS_PER_INDEX_FOLDER
        self._folders.pop(newest, None)  # the run may have gone on; earlier folders do not change
        folder: int | None = newest
        while step > 0 and folder is not None and folder >= 0:
            steps, workers = self._in_folder(folder)
            for at in range(bisect_left(steps, step) - 1, -1, -1):
                yield StepSummary.unread(steps[at], workers[steps[at]])
            folder = self._folder_before(folder)

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        step = self._first_step()
        return self.at(step) if mode is None and step is not None else None

    def layouts(self) -> Mapping[str, StepLayout]:
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
        """Return the nearest earlier folder that is not empty."""
        if folder > 0 and self._in_folder(folder - 1)[0]:
            return folder - 1
        high, reach = folder - 1, 1
        while not self._has_files(max(0, high - reach), high):
            if high <= reach:
                return None
            reach *= 2
        low = max(0, high - reach)
        while high - low > 1:  # something is in between: halve
            middle = (low + high) // 2
            if self._has_files(middle, high):
                low = middle
            else:
                high = middle
        return low

    def _has_files(self, first: int, end: int) -> bool:
        """Return True if a folder from `first` up to, but not including, `end` has an index file."""
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


def _workers_by_step(keys: Iterable[str]) -> dict[int, tuple[str, ...]]:
    workers: dict[int, list[str]] = {}
    for name in filter(None, map(step_file, keys)):
        workers.setdefault(name.step, []).append(name.worker)
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    return {step: shared.setdefault(tuple(names), tuple(names)) for step, names in workers.items()}
