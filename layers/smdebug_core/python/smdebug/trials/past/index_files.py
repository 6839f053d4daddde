"""Index files of single steps, read on demand and kept up to a budget."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from smdebug.exceptions import IndexReaderException, ObjectMissing, SMDebugError
from smdebug.files.alike import AlikeIndexFiles
from smdebug.files.names import index_key
from smdebug.storage import Storage
from smdebug.trials.stored.worker_steps import (
    ArrivedIndex,
    Sharing,
    Workers,
    WorkerStep,
    lists_something,
)

KEPT = 64 << 20
WHOLE = 0
"""The end of a file that is read whole."""
Together = Callable[[Sequence[tuple[str, int]]], Mapping[str, bytes]]
"""Reads many files, each up to its end, at once; those that it leaves out are read one by one."""
_SHARED_AT_MOST = 32 << 20


def none_together(files: Sequence[tuple[str, int]]) -> Mapping[str, bytes]:
    """Leave all of them to be read one by one."""
    return {}


class IndexFiles:
    """What the workers of a run wrote at single steps: one read per worker and step, several at a time.

    The steps used last are kept, up to about `budget` bytes; the newest always. Threads may share it.
    """

    def __init__(
        self,
        storage: Storage,
        report: Callable[[str, SMDebugError], None],
        budget: int = KEPT,
        together: Together = none_together,
    ):
        self._storage = storage
        self._report = report
        self._budget = budget
        self._together = together
        self._parse = AlikeIndexFiles().parse
        self._sharing = Sharing()
        self._steps: OrderedDict[int, _Step] = OrderedDict()
        self._bytes = 0
        self._with_gaps: set[int] = set()
        self._lock = threading.Lock()
        self._being_read: dict[int, threading.Lock] = {}
        self._readers: ThreadPoolExecutor | None = None

    def of(self, step: int, workers: Iterable[str]) -> Workers:
        """Return what these workers wrote at a step, in order of their names.

        A worker is left out if its index file is missing, damaged (which is reported) or empty.
        """
        wanted = tuple(workers)
        known = self._known(step, wanted)
        if known is None:
            with self._lock:
                turn = self._being_read.setdefault(step, threading.Lock())
            try:
                with turn:  # the second thread finds what the first one read
                    known = self._known(step, wanted)
                    if known is None:
                        known = self._fetched(step, wanted)
            finally:
                with self._lock:
                    self._being_read.pop(step, None)
        return known

    def forget_before(self, step: int) -> None:
        """Drop the steps below this one."""
        with self._lock:
            for old in [known for known in self._steps if known < step]:
                self._bytes -= self._steps.pop(old).size

    def forget_gaps(self) -> None:
        """Drop the steps of which an index file was missing."""
        with self._lock:
            for step in self._with_gaps & self._steps.keys():
                self._bytes -= self._steps.pop(step).size
            self._with_gaps.clear()

    def _known(self, step: int, workers: tuple[str, ...]) -> Workers | None:
        with self._lock:
            known = self._steps.get(step)
            if known is None:
                return None
            self._steps.move_to_end(step)
            if workers is known.asked or workers == known.read:
                known.asked = workers  # whoever asks again has the same names: no need to compare them
                return known.workers
            if not known.read_names.issuperset(workers):
                return None
            return known.of(workers)

    def _fetched(self, step: int, workers: tuple[str, ...]) -> Workers:
        with self._lock:
            old = self._steps.get(step)
            if self._sharing.size > _SHARED_AT_MOST:
                self._sharing = Sharing()
            sharing = self._sharing
        missing = [name for name in workers if old is None or name not in old.read_names]
        arrived = self._read_all(step, missing)
        with self._lock:
            size = sum(400 + 4 * len(arrival.file.names) for arrival in arrived) - sharing.size
            written: dict[str, WorkerStep] = dict(old.workers) if old else {}
            written |= {arrival.worker: sharing.worker_step(arrival) for arrival in arrived}
            size += sharing.size  # without what they share with earlier steps
            names = workers if old is None else (*old.read, *missing)
            new = _Step(names, dict(sorted(written.items())), size + (old.size if old else 0))
            if (replaced := self._steps.pop(step, None)) is not None:
                self._bytes -= replaced.size
            self._steps[step] = new
            self._bytes += new.size
            while self._bytes > self._budget and len(self._steps) > 1:
                self._bytes -= self._steps.popitem(last=False)[1].size
        return new.of(workers)

    def _read_all(self, step: int, workers: list[str]) -> list[ArrivedIndex]:
        found = self._together([(index_key(step, worker), WHOLE) for worker in workers])
        alone = [worker for worker in workers if index_key(step, worker) not in found] if found else workers
        read = self._read_each(step, alone)
        if found:
            gathered = set(workers).difference(alone)
            read += [self._parsed(step, worker, found[index_key(step, worker)]) for worker in gathered]
        return [arrival for arrival in read if arrival is not None]

    def _read_each(self, step: int, workers: list[str]) -> list[ArrivedIndex | None]:
        at_a_time = min(self._storage.concurrency, len(workers))
        if at_a_time <= 1:
            return [self._read(step, worker) for worker in workers]
        # A pool of its own: threads that read values wait here for index files.
        if self._readers is None:
            self._readers = ThreadPoolExecutor(self._storage.concurrency, "smdebug-index")
        return list(self._readers.map(lambda worker: self._read(step, worker), workers))

    def _read(self, step: int, worker: str) -> ArrivedIndex | None:
        try:
            content = self._storage.read(index_key(step, worker))
        except ObjectMissing:  # removed since, or not written yet
            with self._lock:
                self._with_gaps.add(step)
            return None
        return self._parsed(step, worker, content)

    def _parsed(self, step: int, worker: str, content: bytes) -> ArrivedIndex | None:
        key = index_key(step, worker)
        try:
            file = self._parse(content, file=key)
        except IndexReaderException as error:
            self._report(key, error)
            return None
        return ArrivedIndex(key, step, worker, file) if lists_something(file) else None


class _Step:
    """What was read of a step, and of which workers."""

    def __init__(self, read: tuple[str, ...], workers: Workers, size: int):
        self.read = self.asked = read
        self.read_names = frozenset(read)
        self.workers = workers
        self.size = size

    def of(self, workers: tuple[str, ...]) -> Workers:
        """Return what some of them wrote, in order of their names."""
        return {name: self.workers[name] for name in sorted(set(workers)) if name in self.workers}
