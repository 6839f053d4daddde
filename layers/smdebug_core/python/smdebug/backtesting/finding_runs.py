"""The runs at and below places, one after the other: a million of them are never in memory together."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, Full, Queue
from typing import NamedTuple

from smdebug.exceptions import MissingCollectionFiles
from smdebug.files.names import COLLECTIONS_FOLDER
from smdebug.runs.opening import refuse_a_file
from smdebug.runs.watched_places import runs_in
from smdebug.storage import open_storage

_AHEAD = 10_000
_LOOK_EVERY = 0.1  # seconds: whether the listing is still wanted


class FoundRun(NamedTuple):
    """A run, by the path and name that people read, and the location that is the same from everywhere."""

    path: str
    name: str
    location: str


def find_runs(places: Sequence[str]) -> Iterator[FoundRun]:
    """Yield the runs at and below the places, in the order of their names, each once."""
    seen: set[str] = set()
    for place in places:
        for run in _runs_at(place):
            if run.location not in seen:
                yield run
            if len(places) > 1:  # places may overlap
                seen.add(run.location)


def _runs_at(place: str) -> Iterator[FoundRun]:
    refuse_a_file(place)
    storage = open_storage(place)
    location = storage.location.rstrip("/")
    if next(iter(storage.list(COLLECTIONS_FOLDER)), None) is not None:
        yield FoundRun(place, location.rpartition("/")[2], location)
        return
    has_any = False
    for name in runs_in(storage):
        has_any = True
        yield FoundRun(f"{place.rstrip('/')}/{name}", name, f"{location}/{name}")
    if not has_any:
        raise MissingCollectionFiles(f"There is no run at or below {storage.location}.")


class RunListing:
    """The runs, listed by a thread that is at most some thousands ahead, so that their number is known early.

    Iterating ends with the error of the listing, if it had one.
    """

    def __init__(self, places: Sequence[str], limit: int | None = None):
        self._found: Queue[FoundRun | None] = Queue(_AHEAD)
        self._runs = islice(find_runs(places), limit)
        self._error: BaseException | None = None
        self._closed = threading.Event()
        self._listed = 0
        self.total: int | None = None
        """The number of runs, once all are listed."""
        threading.Thread(target=self._list, name="smdebug-listing", daemon=True).start()

    def __iter__(self) -> Iterator[FoundRun]:
        while not self._closed.is_set():
            with suppress(Empty):
                run = self._found.get(timeout=_LOOK_EVERY)
                if run is None:
                    break
                yield run
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop listing."""
        self._closed.set()

    def _list(self) -> None:
        try:
            for run in self._runs:
                self._listed += 1
                if not self._put(run):
                    return
            self.total = self._listed
        except BaseException as error:  # noqa: BLE001 - raised where the runs are read
            self._error = error
        self._put(None)

    def _put(self, run: FoundRun | None) -> bool:
        while not self._closed.is_set():
            try:
                self._found.put(run, timeout=_LOOK_EVERY)
            except Full:
                continue
            return True
        return False


__all__ = ["FoundRun", "RunListing", "find_runs"]
