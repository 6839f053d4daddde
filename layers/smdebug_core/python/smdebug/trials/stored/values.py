"""The values of a run's tensors, read from its event files and checked."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from smdebug.exceptions import DamagedFile, ObjectMissing, UnfitFile
from smdebug.files.event_reading import read_value
from smdebug.files.names import index_key
from smdebug.numbers.statistics import Statistics, statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smdebug.trials.stored.event_files import EventFiles
    from smdebug.trials.stored.worker_steps import Places, WorkerStep

MOST_READERS = 64
_LARGE = 16 << 20
"""Elements from which on a shape is believed only if the event file is as long as its index file says."""
_STATISTICS_KEPT = 20_000
S = TypeVar("S")
T = TypeVar("T")


class ValueReader:
    """Reads values, and keeps their statistics for the next rule that asks. Threads may share it.

    `await_event_file` returns once a missing event file exists, or raises.
    """

    def __init__(self, event_files: EventFiles, await_event_file: Callable[[WorkerStep, str, str], None]):
        self._event_files = event_files
        self._await_event_file = await_event_file
        self._statistics: dict[tuple[Any, ...], Statistics] = {}
        self.values_read = 0
        """How often something that a run holds was asked for, whether it was kept from before or not."""

    def read(self, written: WorkerStep, position: int) -> NDArray[Any]:
        """Return the value at that position of what a worker wrote at one step."""
        self.values_read += 1
        spans, checksums, file = written.spans, written.checksums, written.event_file
        if file is None:
            raise DamagedFile(
                index_key(written.step, written.worker), "it names no event file", step=written.step
            )
        start, length = spans.starts[position], spans.lengths[position]
        name = written.layout.names[position]
        while True:
            try:
                record = self._event_files.record(file, start, length, spans.end)
                break
            except ObjectMissing:
                self._await_event_file(written, file, name)
            except UnfitFile as error:
                raise DamagedFile(file, error.problem, name, written.step) from error
        return read_value(
            record,
            file=file,
            name=name,
            step=written.step,
            crc32c=None if checksums is None else checksums[position],
        )

    def shape(self, written: WorkerStep, position: int) -> tuple[int, ...]:
        """Return the shape of that value: as its index file names it, else of the value."""
        known = written.shapes[position] if written.shapes else None
        if known is None:
            return self.read(written, position).shape
        if prod(known) > _LARGE:
            self._event_files.check_length(written.event_file, written.spans.end)
        return known

    def saved_shape(self, written: WorkerStep, places: Places) -> tuple[int, ...]:
        """Return the shape that was saved beside the value, or without one."""
        assert places.shape is not None
        shape = tuple(written.shape_records[places.shape].shape)
        if places.value is not None and prod(shape) > written.spans.lengths[places.value]:
            file = index_key(written.step, written.worker)
            name = written.layout.names[places.value]
            raise DamagedFile(file, f"its shape {shape} does not fit into its record", name, written.step)
        return shape

    def statistics(self, written: WorkerStep, position: int) -> Statistics:
        """Return the statistics of that value, computed once."""
        self.values_read += 1
        start, checksums = written.spans.starts[position], written.checksums
        checksum = None if checksums is None else checksums[position]
        key = (written.event_file, start, checksum, written.saved_at)
        known = self._statistics.get(key)
        if known is None:
            if len(self._statistics) >= _STATISTICS_KEPT:
                self._statistics.clear()
            known = self._statistics[key] = statistics(self.read(written, position))
        return known


def in_parallel(read: Callable[[S], T], items: list[S], at_a_time: int) -> list[T]:
    """Return `read(item)` for each item, in their order, reading so many at a time."""
    at_a_time = min(at_a_time, len(items))
    if at_a_time <= 1:
        return [read(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(at_a_time, "smdebug-values") as readers:
        return list(readers.map(read, items))
