"""The runs at and below places, one after the other: a million of them are never in memory together."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from tempfile import TemporaryFile
from typing import NamedTuple

from smdebug.exceptions import MissingCollectionFiles
from smdebug.runs.opening import no_run_below, refuse_a_file
from smdebug.runs.watched_places import has_steps, runs_in
from smdebug.storage import open_storage

MOST_AHEAD = 10_000
_AT_ONCE = 1 << 18
"""Bytes that are read at a time: the lines of many runs."""


class FoundRun(NamedTuple):
    """A run, by the path and name that people read, and the location that is the same from everywhere."""

    path: str
    name: str
    location: str

    def below(self, name: str) -> FoundRun:
        """Return the run that has this name below the place of this one."""
        return FoundRun(f"{self.path.rstrip('/')}/{name}", name, f"{self.location}/{name}")

    def exists(self) -> bool:
        """Whether there is one, which may be damaged."""
        return has_steps(open_storage(self.location))


def run_at(place: str) -> FoundRun:
    """Return the run at a place, if there is one."""
    location = open_storage(place).location.rstrip("/")
    return FoundRun(place, location.rpartition("/")[2], location)


def find_runs(places: Sequence[str]) -> Iterator[FoundRun]:
    """Yield the runs at and below the places, in the order of their names, each once."""
    seen: set[str] = set()
    overlap = _overlap([open_storage(place).location.rstrip("/") for place in places])
    for place in places:
        for run in _runs_at(place):
            if run.location not in seen:
                yield run
            if overlap:
                seen.add(run.location)


def _overlap(locations: Sequence[str]) -> bool:
    return any(f"{low}/".startswith(f"{high}/") for low, high in permutations(locations, 2))


def _runs_at(place: str) -> Iterator[FoundRun]:
    refuse_a_file(place)
    storage = open_storage(place)
    at = run_at(place)
    if at.exists():
        yield at
        return
    has_any = False
    for name in runs_in(storage, is_run=has_steps):
        has_any = True
        yield at.below(name)
    if not has_any:
        raise MissingCollectionFiles(no_run_below(storage))


class RunListing:
    """The runs, listed by a thread into a temporary file, so that their number is known early.

    With a limit, the thread is at most some thousands ahead, as fewer may be wanted. Iterating ends with the
    error of the listing, if it had one.
    """

    def __init__(self, places: Sequence[str], limit: int | None = None, *, ahead: int | None = None):
        self._runs = islice(find_runs(places), None if limit is None else min(limit, sys.maxsize))
        self._ahead = ahead
        self._lines = TemporaryFile(buffering=0)  # noqa: SIM115 - closed when nobody reads it any more
        self._news = threading.Condition()
        self._error: BaseException | None = None
        self._is_closed = self._has_ended = False
        self._listed = self._taken = self._end = 0
        self.total: int | None = None
        """The number of runs, once all are listed."""
        threading.Thread(target=self._list, name="smdebug-listing", daemon=True).start()

    def __del__(self) -> None:
        self._lines.close()

    def __iter__(self) -> Iterator[FoundRun]:
        at = 0
        while (end := self._wait_beyond(at)) > at:
            part = os.pread(self._lines.fileno(), min(_AT_ONCE, end - at), at)
            whole = part[: part.rindex(b"\n") + 1]
            at += len(whole)
            for line in whole.split(b"\n")[:-1]:
                if self._is_closed:
                    return
                yield FoundRun(*json.loads(line))
                with self._news:
                    self._taken += 1
                    self._news.notify_all()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop listing."""
        with self._news:
            self._is_closed = True
            self._news.notify_all()

    def _wait_beyond(self, at: int) -> int:
        """Wait until there is more; return where it ends."""
        with self._news:
            self._news.wait_for(lambda: self._end > at or self._has_ended or self._is_closed)
            return at if self._is_closed else self._end

    def _list(self) -> None:
        try:
            for run in self._runs:
                self._put(run)
                if self._is_closed:
                    return
            self.total = self._listed
        except BaseException as error:  # noqa: BLE001 - raised where the runs are read
            self._error = error
        finally:
            with self._news:
                self._has_ended = True
                self._news.notify_all()

    def _put(self, run: FoundRun) -> None:
        line = json.dumps(run).encode() + b"\n"
        self._lines.write(line)
        with self._news:
            self._listed += 1
            self._end += len(line)
            self._news.notify_all()
            if self._ahead is not None:
                ahead = self._ahead
                self._news.wait_for(lambda: self._is_closed or self._listed - self._taken <= ahead)


__all__ = ["MOST_AHEAD", "FoundRun", "RunListing", "find_runs", "run_at"]
