"""The runs in the given places: listed, summarised, and read in full while a page shows them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from smdebug.exceptions import DamagedFile, SMDebugError
from smdebug.plain_text import escaped
from smdebug.runs.requests.annotating import Annotated, annotations_of
from smdebug.service.client import Debugger, WatchedRun
from smdebug.service.records import RequestedRule
from smdebug.storage import open_storage
from smdebug.storage.intervals import IN_BUCKET
from smdebug.ui.finding.glance import Glance, Glancer, annotated, forget_configuration
from smdebug.ui.finding.places import FoundRun, Listing, Place, Source
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.cache import Cache
from smdebug.ui.watching.checks import Checks
from smdebug.ui.watching.deployed import Deployed, with_verdict
from smdebug.ui.watching.keeping import keep, kept_of, mark_of
from smdebug.ui.watching.summary import summary_of

MOST_OPEN = 3
"""Runs whose charts stay in memory; more only while pages show them."""
MOST_REMOTE_CHECKS = 100
"""Runs in buckets that are checked in the background, as reading them costs requests."""
_SLICE = 0.05  # seconds for which queries of a run may wait
_IDLE = 5.0
_FOLDER_EVERY, _BUCKET_EVERY, _TABLE_EVERY = 0.3, IN_BUCKET, 2.0
_OPEN_AFTER = 1.0
"""Seconds for which a page shows what was kept of an ended run before the run is opened for its values."""
_GLANCES_AT_A_TIME = 8
_GONE = "The run was deleted."
_UNSEEN = 6.0
"""How many times more rarely places are listed while no page shows the list."""


_VERDICT = ("issues", "issue", "since", "checked", "passed")


@dataclass
class Row:
    """One run in the list."""

    id: str
    path: str
    name: str
    is_remote: bool
    is_deployed: bool = False
    stamp: int = 0
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
        debugger: Debugger | None = None,
        cache: Cache | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        names = list(dict.fromkeys(paths))
        self.deployed = None if debugger is None else Deployed(debugger)
        places: list[Source] = [Place(path, is_single=len(names) == 1) for path in names]
        self.listing = Listing(places if self.deployed is None else [*places, self.deployed])
        self.lock = threading.RLock()
        self.version = 0
        self.rules = rules
        self.rule_file = rule_file
        self._cache = cache or Cache(None)
        self._clock = clock
        self._rows: dict[str, Row] = {}
        self._readers: OrderedDict[str, RunReader] = OrderedDict()
        self._looked_at: dict[str, float] = {}
        self._shown: frozenset[str] = frozenset()
        self._remote_checks = 0
        self._glancer = Glancer()
        self.checks = Checks()
        """The verdicts that are worked out in the background."""

    # Queries

    @property
    def errors(self) -> dict[str, str]:
        """Places that could not be listed, with the reason."""
        return self.listing.errors

    @property
    def is_looking(self) -> bool:
        """Whether a place was not listed yet."""
        return self.listing.is_looking

    @property
    def rows(self) -> list[Row]:
        with self.lock:
            return list(self._rows.values())

    def row(self, run_id: str) -> Row | None:
        return self._rows.get(run_id)

    def check_of(self, row: Row) -> str:
        """Return how far the verdict of a run is: `done`, `waiting`, `checking`, `off`, or why it failed."""
        if row.is_deployed or row.id in self._shown:
            return "done" if row.glance.issues is not None else "waiting"
        return self.checks.state_of(row.id, row.glance)

    def next_check(self) -> Row | None:
        """Return the run whose verdict is worked out next, and note that it is; None if none is due."""
        with self.lock:
            glances = {
                row.id: row.glance
                for row in self._rows.values()
                if not row.is_deployed
                and row.id not in self._readers
                and (not row.is_remote or self._remote_checks < MOST_REMOTE_CHECKS)
            }
            run_id = self.checks.next(glances, self._clock())
            if run_id is None:
                return None
            self.checks.current = run_id
            self._remote_checks += self._rows[run_id].is_remote
            self.version += 1
            return self._rows[run_id]

    def end_check(self, row: Row, found: Glance | SMDebugError) -> None:
        """Take over a verdict, or why there is none."""
        with self.lock:
            problem = str(found) if isinstance(found, SMDebugError) else ""
            steps = found.steps if isinstance(found, Glance) else row.glance.steps
            self.checks.end(row.id, self._clock(), steps, escaped(problem))
            self.version += 1
        if isinstance(found, Glance):
            self.take_verdict(row.id, found)

    def take_verdict(self, run_id: str, glance: Glance) -> None:
        """Take over what was found in the background."""
        with self.lock:
            row = self._rows.get(run_id)
            if row is not None and run_id not in self._readers and row.glance.state != "gone":
                row.glanced_at = self._clock()
                self._set(row, glance)

    def reader(self, run_id: str) -> RunReader | None:
        """Return what reads that run, begun now if it is not open; None if there is no such run."""
        with self.lock:
            row = self._rows.get(run_id)
            if row is None:
                return None
            known = self._readers.get(run_id)
            if known is None:
                trial = self._glancer.take(row.path)
                kept = None if row.is_deployed else kept_of(self._cache, row.path)
                known = RunReader(row.path, self._rules_of(row), trial=trial, kept=kept)
                self._readers[run_id] = known
            self._readers.move_to_end(run_id)
            unseen = [other for other in self._readers if other not in self._shown | {run_id}]
            for other in unseen[: max(0, len(self._readers) - MOST_OPEN)]:
                del self._readers[other]
            return known

    def _rules_of(self, row: Row) -> Sequence[RequestedRule] | None:
        if self.rules is None and row.is_deployed and self.deployed is not None:
            return self.deployed.rules(row.path)
        return self.rules

    def take_annotations(self, row: Row, found: Annotated) -> None:
        """Take over the tags, the note and the pin that a person has changed."""
        with self.lock:
            reader = self._readers.get(row.id)
            if reader is not None:
                reader.touch()
                if reader.trial is not None:
                    forget_configuration(reader.trial)
            self._glancer.take(row.path)
            self._set(row, annotated(row.glance, found))

    def watched_run(self, row: Row) -> WatchedRun | None:
        """Return the run in a deployed debugger; None for any other run."""
        return self.deployed.run(row.path) if self.deployed and row.is_deployed else None

    # Work

    def work(self, open_runs: Sequence[str], *, list_is_open: bool = True) -> float:
        """Do a slice of what is due; return the seconds until more is due, 0 if it is now.

        `open_runs` are those that a page shows; others, and a list that no page shows, cost nothing.
        """
        now, self._shown = self._clock(), frozenset(open_runs)
        self.find_runs(patience=1.0 if list_is_open else _UNSEEN)
        pause = _FOLDER_EVERY if open_runs else _IDLE
        for run_id in open_runs:
            pause = min(pause, self._advance(run_id))
        if pause and list_is_open and self._glance_at_some(now):
            pause = 0.0
        return pause

    def find_runs(self, *, local_only: bool = False, patience: float = 1.0) -> None:
        """List the places that are due, add the runs that are new, and mark those that are gone."""
        errors, looking = dict(self.errors), self.is_looking
        if not self.listing.update(self._clock(), local_only=local_only, patience=patience):
            return
        found = {id_of(run.path): run for run in self.listing.runs}
        with self.lock:
            for run_id, run in found.items():
                self._add(run_id, run)
            for run_id in self._rows.keys() - found.keys():
                row = self._rows[run_id]
                if row.glance.state != "gone":
                    self._set(row, replace(row.glance, state="gone", error=_GONE))
                    if run_id in self._readers:
                        self._readers[run_id].note("gone", f"{_GONE} What was read of it is shown.")
            if self.errors != errors or self.is_looking != looking:
                self.version += 1

    def _add(self, run_id: str, run: FoundRun) -> None:
        row = self._rows.get(run_id)
        if row is None:
            row = Row(run_id, run.path, escaped(run.name), run.is_remote, run.is_deployed, run.stamp)
            self._rows[run_id] = row
            if not run.is_remote:
                self._recall(row)
            self.version += 1
        elif row.glance.state == "gone" or (row.glance.state == "ended" and run.stamp != row.stamp):
            row.stamp = run.stamp
            row.glance, row.glanced_at = Glance(), None
            self._glancer.take(run.path)
            self.checks.forget(run_id)
            self._readers.pop(run_id, None)
            self.version += 1
        if run.is_deployed:
            row.is_deployed = True
            self._set(row, row.glance)

    def _advance(self, run_id: str) -> float:
        reader, row = self.reader(run_id), self.row(run_id)
        if reader is None or row is None or row.glance.state == "gone":
            return _FOLDER_EVERY
        is_behind = reader.is_behind and not reader.error
        every = _BUCKET_EVERY if row.is_remote else _FOLDER_EVERY
        if row.is_deployed:
            every = _TABLE_EVERY
        if run_id not in self._looked_at and reader.trial is None and reader.has_ended:
            self._looked_at[run_id] = self._clock() + _OPEN_AFTER - every
        due = self._looked_at.get(run_id, -every) + every - self._clock()
        if due > 0 and not is_behind:
            return due
        if row.is_deployed and due <= 0 and not self._has_news(row, reader) and not is_behind:
            self._looked_at[run_id] = self._clock()
            return every
        is_open = reader.trial is not None  # what was kept shows charts, but no values of a step
        if is_open and reader.has_ended and not reader.is_behind and not reader.error:
            return every
        self._looked_at[run_id] = self._clock()
        before = reader.is_read, reader.is_complete
        more = reader.advance(_SLICE)
        after = reader.is_read, reader.is_complete
        if after[0] and after != before and not row.is_deployed:
            with suppress(SMDebugError):  # removed meanwhile
                keep(self._cache, row.path, reader)
        self._set(row, summary_of(row.glance, reader))
        row.glanced_at = self._clock()
        return 0.0 if more else every

    def _has_news(self, row: Row, reader: RunReader) -> bool:
        """Read the table; return whether to read the run's files, too."""
        assert self.deployed is not None
        try:
            is_news = self.deployed.look(row.path)
        except SMDebugError as error:
            reader.note("deployed", str(error))
            return True  # the files may be readable all the same
        reader.note("deployed", "")
        if is_news:
            reader.touch()
            self._set(row, row.glance)
        return is_news or reader.trial is None

    def _glance_at_some(self, now: float) -> bool:
        """Summarise a few runs that are new or have not ended; return whether others wait."""
        waiting = [row for row in self.rows if self._is_due(row, now)]
        batch = waiting[:_GLANCES_AT_A_TIME]
        if any(row.is_remote for row in batch):
            with ThreadPoolExecutor(len(batch)) as pool:
                list(pool.map(self._glance_at, batch))
        else:
            for row in batch:
                self._glance_at(row)
        return len(waiting) > _GLANCES_AT_A_TIME

    def _glance_at(self, row: Row) -> None:
        if row.glanced_at is None and row.is_remote and self._recall(row):
            return
        known, glance = row.glance, self._glancer.at(row.path)
        row.glanced_at = self._clock()
        if glance.steps < known.checked:  # another run has taken the place
            known = Glance()
        verdict = {name: getattr(known, name) for name in _VERDICT}
        self._set(row, replace(glance, **verdict))

    def _recall(self, row: Row) -> bool:
        """Take what was kept of an ended run; return whether there was any."""
        if not self._cache.has("glance", row.path):
            return False
        try:
            cached = self._cache.get("glance", row.path, mark_of(row.path))
            if cached is None:
                return False
            row.glance, row.glanced_at = Glance.from_dict(cached), self._clock()
            with suppress(DamagedFile):
                row.glance = annotated(row.glance, annotations_of(open_storage(row.path)))
        except (TypeError, SMDebugError):  # of another version, or the run is gone
            return False
        self._set(row, row.glance)
        self.version += 1
        return True

    def _is_due(self, row: Row, now: float) -> bool:
        if row.glanced_at is None:
            return True
        if row.glance.state == "reading" and row.id not in self._readers:
            return True
        if row.glance.state in ("ended", "gone") or row.id in self._readers:
            return False
        return now - row.glanced_at >= (30.0 if row.is_remote else 10.0)

    def _set(self, row: Row, glance: Glance) -> None:
        if row.is_deployed and self.deployed is not None:
            snapshot = self.deployed.snapshot(row.path)
            if snapshot is not None:
                glance = with_verdict(glance, snapshot)
        with self.lock:
            if glance == row.glance and not row.is_deployed:
                return
            row.glance = glance
            self.version += 1
        if glance.state == "ended" and not row.is_deployed:
            with suppress(SMDebugError):
                self._cache.put("glance", row.path, mark_of(row.path), glance.to_dict())


def id_of(path: str) -> str:
    """Return the run's id in addresses, which does not change and does not reveal the path."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:12]


__all__ = ["MOST_OPEN", "Board", "Row", "id_of"]
