"""The given places: each is listed when it is due, or reports why it cannot be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from smdebug.exceptions import SMDebugError
from smdebug.files.names import COLLECTIONS_FOLDER
from smdebug.plain_text import escaped
from smdebug.runs.opening import refuse_a_file
from smdebug.runs.watched_places import runs_in
from smdebug.secrets.texts import redacted_line
from smdebug.storage import Storage, open_storage
from smdebug.storage.folder import FolderStorage
from smdebug.storage.intervals import IN_BUCKET
from smdebug.ui.finding.bucket_runs import BucketRuns
from smdebug.ui.finding.local_runs import runs_below

MOST_RUNS = 5000
FOLDER_EVERY, BUCKET_EVERY = 5.0, IN_BUCKET
"""Seconds between two listings."""


@dataclass(frozen=True)
class FoundRun:
    """A run in a place."""

    path: str
    name: str
    is_remote: bool = False
    is_deployed: bool = False
    stamp: int = 0
    """A number that changes when the run is begun again; 0 where that is not known."""


class Source(Protocol):
    """Something that lists runs."""

    path: str
    every: float
    is_remote: bool

    def find(self) -> list[FoundRun]:
        """List the runs; raise an `SMDebugError` if that is not possible now."""


class Place:
    """A folder or prefix: the runs at and below it."""

    def __init__(self, path: str, *, is_single: bool):
        refuse_a_file(path)
        self.path = path
        self._is_single = is_single
        self._storage = open_storage(path)
        self.is_remote = self._storage.concurrency > 1
        self.every = BUCKET_EVERY if self.is_remote else FOLDER_EVERY
        self._bucket = BucketRuns(self._storage) if self.is_remote else None

    def find(self) -> list[FoundRun]:
        """List the runs; without any the place itself, where one may begin."""
        location = self._storage.location.rstrip("/")
        own_name = escaped(location.rpartition("/")[2]) or self.path
        names = self._names() or [""]
        base = self.path.rstrip("/")
        return [
            FoundRun(
                f"{base}/{name}" if name else self.path,
                (name if self._is_single else f"{own_name}/{name}") if name else own_name,
                self.is_remote,
                stamp=0 if self.is_remote else _stamp_of(f"{location}/{name}"),
            )
            for name in names
        ]

    def _names(self) -> list[str]:
        if self._bucket is not None:
            return self._bucket.find(MOST_RUNS)
        storage: Storage = self._storage
        if next(iter(storage.list(COLLECTIONS_FOLDER)), None) is not None:
            return [""]
        is_folder = isinstance(storage, FolderStorage)
        below = runs_below(storage.location) if is_folder else runs_in(storage)
        return list(islice(below, MOST_RUNS))


def _stamp_of(folder: str) -> int:
    try:
        return (Path(folder) / COLLECTIONS_FOLDER).stat().st_mtime_ns
    except (OSError, ValueError):  # nothing there yet, or no folder
        return 0


class Listing:
    """All sources of runs, with what each of them listed last."""

    def __init__(self, sources: Sequence[Source]):
        self._sources = list(sources)
        self._found: dict[str, list[FoundRun]] = {}
        self._listed_at: dict[str, float] = {}
        self.errors: dict[str, str] = {}
        """Why a source could not be listed the last time."""

    @property
    def names(self) -> list[str]:
        """The sources, as they were named."""
        return [source.path for source in self._sources]

    @property
    def is_looking(self) -> bool:
        """Whether a source was not listed yet."""
        return len(self._listed_at) < len(self._sources)

    @property
    def runs(self) -> list[FoundRun]:
        """The runs, each once."""
        found = (run for source in self._sources for run in self._found.get(source.path, ()))
        return list({run.path: run for run in found}.values())

    def update(self, now: float, *, local_only: bool = False, patience: float = 1.0) -> bool:
        """List the sources that are due; return whether any was.

        With more `patience` they are due so many times later.
        """
        due = [
            source
            for source in self._sources
            if not (local_only and source.is_remote)
            and now - self._listed_at.get(source.path, -math.inf) >= patience * source.every
        ]
        for source in due:
            try:
                self._found[source.path] = source.find()
                self.errors.pop(source.path, None)
            except SMDebugError as error:  # what was found before stays in the list
                self.errors[source.path] = escaped(redacted_line(error))
            self._listed_at[source.path] = now
        return bool(due)


__all__ = ["FoundRun", "Listing", "Place", "Source"]
