"""Scalars and tensors that are saved after their step was written: between two steps, or after the last.

They belong to the step that ran last, so its two files are written again, with them at the end. Existing
positions do not change. If the step was lost, they are lost with it. A reader that has read the step does not
read it again; one that opens the run later finds them. Saving them inside the step is better, and costs
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from smdebug.exceptions import ObjectMissing, SMDebugTypeError, SMDebugValueError
from smdebug.files.event_reading import read_record
from smdebug.files.event_writing import encode_event
from smdebug.files.framing import Checksum
from smdebug.files.index import IndexMeta, TensorEntry, encode_index, parse_index
from smdebug.files.names import SERIES, event_key, index_key
from smdebug.logger import get_logger
from smdebug.saving.planning.step_clock import StepClock
from smdebug.saving.writing.step_recording import StepJob
from smdebug.storage.base import Buffer, Storage

LARGEST_REWRITTEN = 256 << 20


class LateTensors:
    """Values to add to one step of one worker."""

    def __init__(
        self,
        clock: StepClock,
        worker: str,
        *,
        checksum: Checksum,
        meta_extras: Callable[[], Mapping[str, Any]],
    ):
        self.clock = clock
        self._worker = worker
        self._checksum: Checksum = checksum
        self._meta_extras = meta_extras
        self._values: list[tuple[str, np.ndarray[Any, Any], float]] = []

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, name: str, array: np.ndarray[Any, Any], wall_time: float | None = None) -> None:
        """Take a value that no longer changes."""
        self._values.append((name, array, time.time() if wall_time is None else wall_time))

    def job(self, storage: Storage, was_lost: Callable[[int], bool]) -> StepJob:
        """Return the job that writes them, in the turn of its index file: by then the step is written."""
        size = sum(array.nbytes for _, array, _ in self._values)

        def rewrite() -> None:
            # What is written of a lost step may still arrive, and would not fit to other bytes.
            if not was_lost(self.clock.step):
                self._rewrite(storage)

        return StepJob(self.clock.step, size, _nothing, rewrite, _nothing, amends=True)

    def _rewrite(self, storage: Storage) -> None:
        events = event_key(self.clock.step, self._worker)
        index = index_key(self.clock.step, self._worker)
        meta = IndexMeta(self.clock.mode, self.clock.mode_step, events, self._meta_extras())
        entries: list[TensorEntry] = []
        beside: list[TensorEntry] = []
        shapes: tuple[Any, ...] = ()
        pieces: list[Buffer] = []
        position = 0
        try:
            there = parse_index(storage.read(index), file=index)
        except ObjectMissing:  # of the step, only values for TensorBoard were written
            pass
        else:
            meta = there.meta._replace(event_file_name=events)
            shapes = there.shape_records
            if there.names:
                position = storage.size(events)
                if position > LARGEST_REWRITTEN:
                    get_logger().warning(
                        "%s, saved after step %d, is not kept: the step has %d bytes, too many to be written "
                        "again. Save such values inside the step.",
                        ", ".join(name for name, _, _ in self._values),
                        self.clock.step,
                        position,
                    )
                    return
                pieces.append(storage.read(events))
                blank = (None,) * len(there.names)
                known = [
                    TensorEntry(*columns)
                    for columns in zip(
                        there.names,
                        there.starts,
                        there.lengths,
                        there.crcs or blank,
                        there.dtypes or blank,
                        there.shapes or blank,
                        strict=True,
                    )
                ]
                listed = len(known) - there.beside
                entries, beside = known[:listed], known[listed:]
        for name, given, wall_time in self._values:
            array = given
            if name.startswith(SERIES) and pieces:
                array = _after_rows_before(given, name, entries, pieces[0], events)
            try:
                record = encode_event(
                    name,
                    array,
                    step=self.clock.step,
                    wall_time=wall_time,
                    mode=self.clock.mode,
                    mode_step=self.clock.mode_step,
                    checksum=self._checksum,
                )
            except (SMDebugTypeError, SMDebugValueError) as error:  # the step is whole without it
                get_logger().warning("%s of step %d is not saved: %s", name, self.clock.step, error)
                continue
            dtype = "str" if array.dtype.kind in "USO" else array.dtype.name
            entries.append(TensorEntry(name, position, record.length, record.crc32c, dtype, array.shape))
            pieces += record.pieces
            position += record.length
        sink = storage.create(events)
        try:
            sink.write(pieces)
            sink.commit()
        except BaseException:
            sink.abort()
            raise
        storage.write(index, encode_index(meta, entries, shapes, beside=beside, checksum=True))


def _after_rows_before(
    rows: np.ndarray[Any, Any], name: str, entries: list[TensorEntry], written: Buffer, file: str
) -> np.ndarray[Any, Any]:
    """Return the rows of a series after those that the step has already: the last value of a name counts."""
    for entry in reversed(entries):
        if entry.name == name:
            record = memoryview(written)[entry.start : entry.start + entry.length]
            return np.concatenate([read_record(record, file=file, name=name).value, rows])
    return rows


def _nothing() -> None:
    pass
