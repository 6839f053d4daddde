"""Runs written by hand, file by file, so that a test decides what arrives when."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from smdebug.files import names
from smdebug.files.event_writing import as_saved_array, encode_event
from smdebug.files.index import IndexMeta, ShapeRecord, TensorEntry, encode_index
from smdebug.mode_keys import ModeKeys
from smdebug.storage import ByteSpan, Storage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial
from smdebug.trials.live.waiting import Clock, WaitLimits

GLOBAL = ModeKeys.GLOBAL


class StoppedClock:
    """A clock that moves only during a sleep, when other things may happen."""

    def __init__(self, *happenings: Any):
        self.time = 0.0
        self.happenings = list(happenings)

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        assert self.time < 1e6, "waiting forever"
        if self.happenings:
            self.happenings.pop(0)()


def begin(
    storage: Storage,
    workers: int = 1,
    collections: Mapping[str, Mapping[str, Any]] | None = None,
    present: int | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Storage:
    """Write the collections files of all workers, or of the first few."""
    described = {
        name: {"name": name, "include_regex": [], "tensor_names": [], **values}
        for name, values in (collections or {"all": {}}).items()
    }
    content = {"collections": described, "_meta": {"num_workers": workers, **(meta or {})}}
    for worker in range(workers if present is None else present):
        storage.write(names.collections_key(f"worker_{worker}"), json.dumps(content).encode())
    return storage


def write_step(
    storage: Storage,
    step: int,
    tensors: Mapping[str, Any] | None = None,
    *,
    worker: int | str = 0,
    mode: ModeKeys = GLOBAL,
    mode_step: int | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    events: bool = True,
    index: bool = True,
    meta: Mapping[str, Any] | None = None,
) -> None:
    """Write what a worker saved at a step: its event file, then its index file."""
    worker = f"worker_{worker}" if isinstance(worker, int) else worker
    mode_step = step if mode_step is None else mode_step
    tensors = {"loss": float(step)} if tensors is None and shapes is None else tensors or {}
    records, entries, start = [], [], 0
    for name, value in tensors.items():
        array = as_saved_array(value)
        record = encode_event(name, array, step=step, wall_time=1e9, mode=mode, mode_step=mode_step)
        records.append(b"".join(bytes(piece) for piece in record.pieces))
        entries.append(TensorEntry(name, start, record.length, record.crc32c))
        start += record.length
    file = names.event_key(step, worker) if tensors else None
    if file and events:
        storage.write(file, b"".join(records))
    if index:
        records_of_shapes = [ShapeRecord(name, name, shape) for name, shape in (shapes or {}).items()]
        head = IndexMeta(mode, mode_step, file, meta or {})
        storage.write(names.index_key(step, worker), encode_index(head, entries, records_of_shapes))


def end(storage: Storage) -> None:
    storage.write(names.END_MARKER, b"")


def a_run(steps: int = 3, workers: int = 1, ended: bool = False, **tensors: Any) -> MemoryStorage:
    storage = MemoryStorage()
    begin(storage, workers)
    for step in range(steps):
        for worker in range(workers):
            write_step(storage, step, tensors or None, worker=worker)
    if ended:
        end(storage)
    return storage


def open_trial(storage: Storage, clock: StoppedClock | None = None, **options: Any) -> Trial:
    limits = {
        key: options.pop(key)
        for key in ("run_seconds", "incomplete_steps", "end_seconds", "event_file_attempts")
        if key in options
    }
    return Trial(
        "a trial",
        storage,
        clock=(clock or StoppedClock()).clock,
        wait_limits=WaitLimits(**limits),
        **options,
    )


class CountingStorage(MemoryStorage):
    """A remote place: it counts its requests, and profits from concurrent ones."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.bytes_read = 0

    @property
    def concurrency(self) -> int:
        return 8

    def count(self, kind: str) -> int:
        return sum(1 for asked, _ in self.asked if asked == kind)

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        self.asked.append(("read", key))
        data = super().read(key, span)
        self.bytes_read += len(data)
        return data

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        return memoryview(bytearray(self.read(key, span)))

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        self.asked.append(("list", prefix))
        return super().list(prefix, start_after)

    def exists(self, key: str) -> bool:
        self.asked.append(("exists", key))
        return super().exists(key)


def large(value: float) -> np.ndarray[Any, Any]:
    return np.full(1 << 17, value, np.float32)
