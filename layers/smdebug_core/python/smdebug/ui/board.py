"""The runs in the given places: listed, summarised, and read in full while a page shows them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from smdebug.diagnosis.wording import in_a_line
from smdebug.exceptions import SMDebugError
from smdebug.files.names import COLLECTIONS_FOLDER
from smdebug.plain_text import escaped
from smdebug.runs.opening import refuse_a_file
from smdebug.runs.watched_places import runs_in
from smdebug.service.records import RequestedRule
from smdebug.storage import Storage, open_storage
from smdebug.storage.folder import FolderStorage
from smdebug.ui.cache import Cache
from smdebug.ui.glance import Glance, configuration_of, finite, glance_at
from smdebug.ui.local_runs import runs_below
from smdebug.ui.reading import RunReader

MOST_RUNS = 5000
MOST_OPEN = 3
"""Runs whose charts are kept in memory."""
_SLICE = 0.05  # seconds for which queries of a run may wait
_LIST_EVERY = 5.0
_FOLDER_EVERY, _BUCKET_EVERY = 0.3, 10.0
_GLANCES_AT_A_TIME = 8


@dataclass
class Row:
    """One run in the list."""

    id: str
    path: str
    name: str
    is_remote: bool
    ended: bool = False
    glance: Glance = field(default_factory=Glance)
    glanced_at: float | None = None


class Board:
    """All runs. One thread calls `work`; any thread may query."""

    def __init__(
        self,
        paths: Sequence[str],
        rules: Sequence[RequestedRule] | None = None,
        rule_file: str | None = None,
        *,
        cache: Cache | None = None,
        clock: Callable[[], float] = time.monotonic,
        known_runs: Callable[[], Sequence[tuple[str, Glance]]] | None = None,
    ):
        for path in paths:
            refuse_a_file(path)
        self.lock = threading.RLock()
        self.version = 0
        self.errors: dict[str, str] = {}
        """Places that could not be listed, with the reason."""
        self.rules = rules
        self.rule_file = rule_file
        self._paths = list(dict.fromkeys(paths))
        self._known_runs = known_runs
        self._cache = cache or Cache(None)
        self._clock = clock
        self._rows: dict[str, Row] = {}
        self._readers: OrderedDict[str, RunReader] = OrderedDict()
        self._looked_at: dict[str, float] = {}
        self._listed_at: float | None = None

    # Queries

    @property
    def rows(self) -> list[Row]:
        with self.lock:
            return list(self._rows.values())

    def row(self, run_id: str) -> Row | None:
        return self._rows.get(run_id)

    def reader(self, run_id: str) -> RunReader | None:
        """Return what reads that run, begun now if it is not open; None if there is no such run."""
        with self.lock:
            row = self._rows.get(run_id)
            if row is None:
                return None
            known = self._readers.get(run_id)
            if known is None:
                known = self._readers[run_id] = RunReader(row.path, self.rules)
            self._readers.move_to_end(run_id)
            while len(self._readers) > MOST_OPEN:
                self._readers.popitem(last=False)
            return known

    # Work

    def work(self, open_runs: Sequence[str], *, list_is_open: bool = True) -> float:
        """Do a slice of what is due; return the seconds until more is due, 0 if it is now.

        `open_runs` are those that a page shows; others, and a list that no page shows, cost nothing.
        """
        now = self._clock()
        if self._listed_at is None or (list_is_open and now - self._listed_at >= self._list_every):
            self.find_runs()
            self._listed_at = now
        pause = _FOLDER_EVERY if open_runs else _LIST_EVERY
        for run_id in open_runs:
            pause = min(pause, self._advance(run_id))
        if pause and list_is_open and self._glance_at_some(now):
            pause = 0.0
        return pause

    @property
    def _list_every(self) -> float:
        return _BUCKET_EVERY if any(row.is_remote for row in self._rows.values()) else _LIST_EVERY

    def _advance(self, run_id: str) -> float:
        reader, row = self.reader(run_id), self.row(run_id)
        if reader is None or row is None:
            return _FOLDER_EVERY
        every = _BUCKET_EVERY if row.is_remote else _FOLDER_EVERY
        due = self._looked_at.get(run_id, -every) + every - self._clock()
        if due > 0 and not (reader.is_behind and not reader.error):
            return due
        if reader.has_ended and not reader.is_behind and not reader.error:
            return every
        self._looked_at[run_id] = self._clock()
        more = reader.advance(_SLICE)
        self._note(row, reader)
        return 0.0 if more else every

    def find_runs(self) -> None:
        """List the places, and add the runs that are new."""
        found: list[tuple[str, str, Storage]] = []
        for path in self._paths:
            try:
                found += self._below(path)
                self._forget_error(path)
            except SMDebugError as error:
                self._note_error(path, error)
        with self.lock:
            known = set(self._rows)
            for path, name, storage in found:
                self._add(path, name, storage)
            gone = known - {id_of(path) for path, _, _ in found}
            for run_id in gone if not self.errors else ():
                row = self._rows[run_id]
                if row.glance.state != "gone":
                    row.glance = replace(row.glance, state="gone", error="The run was deleted.")
                    self.version += 1

    def _below(self, path: str) -> list[tuple[str, str, Storage]]:
        storage = open_storage(path)
        own_name = escaped(storage.location.rstrip("/").rpartition("/")[2]) or path
        if next(iter(storage.list(COLLECTIONS_FOLDER)), None) is not None:
            return [(path, own_name, storage)]
        is_local = isinstance(storage, FolderStorage)
        below = runs_below(storage.location) if is_local else runs_in(storage)
        names = list(islice(below, MOST_RUNS))
        base = path.rstrip("/")
        several = len(self._paths) > 1
        found = [
            (f"{base}/{name}", f"{own_name}/{name}" if several else name, storage) for name in names
        ]
        return found or [(path, own_name, storage)]

    def _add(self, path: str, name: str, storage: Storage) -> None:
        run_id = id_of(path)
        row = self._rows.get(run_id)
        if row is None:
            remote = storage.concurrency > 1
            row = self._rows[run_id] = Row(run_id, path, escaped(name), remote)
            if not remote:
                self._recall(row)
            self.version += 1
        elif row.glance.state == "gone":
            row.glance, row.glanced_at = Glance(), None
            self._readers.pop(run_id, None)
            self.version += 1

    def _glance_at_some(self, now: float) -> bool:
        """Summarise a few runs that are new or have not ended; return whether others wait."""
        waiting = [row for row in self.rows if self._is_due(row, now)]
        for row in waiting[:_GLANCES_AT_A_TIME]:
            if row.glanced_at is None and row.is_remote and self._recall(row):
                continue
            glance = glance_at(row.path)
            known = row.glance
            glance = replace(glance, issues=known.issues, issue=known.issue, since=known.since)
            row.glanced_at = now
            self._set(row, glance)
        return len(waiting) > _GLANCES_AT_A_TIME

    def _recall(self, row: Row) -> bool:
        """Take what was kept of an ended run; return whether there was any."""
        if not self._cache.has("glance", row.path):
            return False
        try:
            cached = self._cache.get("glance", row.path, mark_of(row.path))
            if cached is None:
                return False
            row.glance, row.glanced_at = Glance.from_dict(cached), self._clock()
        except (TypeError, SMDebugError):  # of another version, or the run is gone
            return False
        self.version += 1
        return True

    def _is_due(self, row: Row, now: float) -> bool:
        if row.glanced_at is None:
            return True
        if row.glance.state in ("ended", "gone") or row.id in self._readers:
            return False
        return now - row.glanced_at >= (30.0 if row.is_remote else 10.0)

    def _set(self, row: Row, glance: Glance) -> None:
        if glance != row.glance:
            row.glance = glance
            self.version += 1
            if glance.state == "ended":
                with suppress(SMDebugError):
                    self._cache.put("glance", row.path, mark_of(row.path), glance.to_dict())

    def _note(self, row: Row, reader: RunReader) -> None:
        """Bring the row up to date with what was read of the run."""
        if reader.trial is None:
            if reader.error:
                self._set(row, replace(row.glance, error=reader.error))
            return
        trial = reader.trial
        checked = reader.following is not None and reader.steps_checked > 0
        first = reader.issues[0] if reader.issues else None
        steps = reader.steps
        state = "ended" if reader.has_ended else "training" if steps else "waiting"
        glance = replace(
            row.glance,
            state=state,
            error=reader.error,
            steps=len(steps),
            last_step=steps[-1] if steps else None,
            first_saved=trial.saved_at(steps[0]) if steps else None,
            last_saved=trial.saved_at(steps[-1]) if steps else None,
            workers=trial.num_workers,
            configuration=configuration_of(trial),
            issues=len(reader.issues) if checked else None,
            issue="" if first is None else escaped(in_a_line(first)),
            since=None if first is None else first.since,
        )
        name = row.glance.loss_name or loss_name(reader)
        if name in reader.series and len(reader.series[name]):
            values = reader.series[name].between(None, None, 48).high
            glance = replace(
                glance,
                loss_name=name,
                loss=finite(float(reader.series[name].values[-1])),
                curve=tuple(finite(float(value)) for value in values),
            )
        self._set(row, glance)
        row.glanced_at = self._clock()

    def _note_error(self, path: str, error: SMDebugError) -> None:
        text = escaped(" ".join(str(error).split()))
        if self.errors.get(path) != text:
            self.errors[path] = text
            self.version += 1

    def _forget_error(self, path: str) -> None:
        if self.errors.pop(path, None) is not None:
            self.version += 1


def loss_name(reader: RunReader) -> str:
    """Return the most likely name of the training loss."""
    names = list(reader.series)
    return next((name for name in names if name.lower() == "loss"), "") or next(
        (name for name in names if "loss" in name.lower()), ""
    )


def id_of(path: str) -> str:
    """Return the run's id in addresses, which does not change and does not reveal the path."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def mark_of(path: str) -> str:
    """Return a text that changes when another run takes the place of this one."""
    storage = open_storage(path)
    key = next(iter(storage.list(COLLECTIONS_FOLDER)), None)
    return "" if key is None else hashlib.sha256(storage.read(key)).hexdigest()


__all__ = ["MOST_OPEN", "Board", "Row", "id_of", "loss_name"]
