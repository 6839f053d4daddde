"""The runs in watched places: each place is a run, or contains several."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from smdebug.files.names import COLLECTIONS_FOLDER, INDEX_FOLDER, step_file
from smdebug.runs.live_run import LiveRun
from smdebug.runs.opening import refuse_a_file
from smdebug.service.records import RequestedRule
from smdebug.storage import Storage, open_storage
from smdebug.storage.folders import folders_in

MOST_RUNS = 1000
DEEPEST = 4  # folders between a place and its runs


class WatchedPlaces:
    """Finds runs at and below the paths, also those that begin later."""

    def __init__(
        self,
        paths: Sequence[str],
        rules: Sequence[RequestedRule] | None = None,
        rule_file: str | None = None,
    ):
        for path in paths:
            refuse_a_file(path)
        self._paths = list(dict.fromkeys(paths))
        self._storages = {path: open_storage(path) for path in self._paths}
        self._rules = rules
        self._rule_file = rule_file
        self._with_several: set[str] = set()
        self._runs: dict[str, LiveRun] = {}
        self._looked: float | None = None

    @property
    def runs(self) -> list[LiveRun]:
        """The runs found so far, and the paths where one is still to begin."""
        return list(self._runs.values())

    @property
    def are_remote(self) -> bool:
        """Whether checking for runs costs requests."""
        return any(storage.concurrency > 1 for storage in self._storages.values())

    @property
    def have_ended(self) -> bool:
        """Whether every run has ended and no other can begin: a place with several may get another."""
        return not self._with_several and all(run.has_ended for run in self.runs)

    def look_for_runs(self, every: float) -> None:
        """Look for runs that have begun, unless it was done less than `every` seconds ago."""
        now = time.monotonic()
        if self._looked is not None and now - self._looked < every:
            return
        self._looked = now
        for path, storage in self._storages.items():
            known = self._runs.get(path)
            if known is not None and known.following is not None:
                continue
            if next(iter(storage.list(COLLECTIONS_FOLDER)), None) is not None:
                self._add(path)
                continue
            below = list(islice(runs_in(storage), MOST_RUNS))
            if below:
                self._with_several.add(path)
                self._runs.pop(path, None)
                for name in below:
                    self._add(f"{path.rstrip('/')}/{name}")
            elif path not in self._with_several:
                self._add(path)

    def _add(self, path: str) -> None:
        if path not in self._runs:
            self._runs[path] = LiveRun(path, self._rules, self._rule_file)


def has_collections(storage: Storage, prefix: str = "") -> bool:
    """Return whether there is a run at `prefix`, which is empty or ends in `/`."""
    return next(iter(storage.list(prefix + COLLECTIONS_FOLDER)), None) is not None


def has_steps(storage: Storage, prefix: str = "") -> bool:
    """Return whether there is a run, or one that has lost its collections: its index files are there."""
    if has_collections(storage, prefix):
        return True
    first = next(iter(storage.list(prefix + INDEX_FOLDER)), None)
    return first is not None and step_file(first) is not None


def runs_in(
    storage: Storage,
    prefix: str = "",
    depth: int = 1,
    is_run: Callable[[Storage, str], bool] = has_collections,
) -> Iterator[str]:
    """Yield the paths of runs below a place, relative to it; no run's files are listed."""
    for name in folders_in(storage, prefix):
        path = f"{prefix}{name}/"
        if is_run(storage, path):
            yield path[:-1]
        elif depth < DEEPEST:
            yield from runs_in(storage, path, depth + 1, is_run)
