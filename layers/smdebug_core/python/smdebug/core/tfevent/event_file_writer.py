"""For code written against smdebug that writes summaries and graphs to an event file itself."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from smdebug.core.locations import TensorLocation
from smdebug.core.tfevent.events_writer import EventsWriter
from smdebug.core.tfevent.index_file_writer import EventWithIndex, IndexWriter
from smdebug.core.utils import get_relative_event_file_path, parse_worker_name_from_file
from smdebug.files.checksum import crc32c
from smdebug.files.proto.event_pb2 import Event
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.files.proto.summary_pb2 import Summary
    from smdebug.files.tensorboard import Serializable

__all__ = ["EventFileWriter"]


class EventFileWriter:
    """Writes summaries, graphs and events to one file, at once and in order.

    `max_queue`, `flush_secs` and `verbose` are accepted and have no effect: there is no thread.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: int = 120,
        index_writer: IndexWriter | None = None,
        verbose: bool = False,
        write_checksum: bool = False,
    ):
        self._path = os.fspath(path)
        self._index_writer = index_writer
        self._writer = EventsWriter(path, index_writer, verbose, write_checksum)

    def __enter__(self) -> EventFileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write_graph(self, graph: Serializable) -> None:
        """Append a model's graph."""
        self.write_event(Event(wall_time=time.time(), graph_def=graph.SerializeToString()))

    def write_summary(self, summary: Summary, step: int, timestamp: float | None = None) -> None:
        """Append a summary."""
        self.write_event(_event(summary, step, timestamp))

    def write_summary_with_index(
        self,
        summary: Summary,
        step: int,
        tname: str,
        mode: ModeKeys | str | None,
        mode_step: int,
        timestamp: float | None = None,
    ) -> list[int]:
        """Append a summary, add it to the index and return its place: [start, length]."""
        event = _event(summary, step, timestamp)
        return self.write_event(EventWithIndex(event, tname, mode, mode_step))

    def write_event(self, event: Event | EventWithIndex) -> list[int]:
        """Append an event and return the place of its record: [start, length]."""
        if not isinstance(event, EventWithIndex):
            return self._writer.write_event(event)
        start, length = self._writer.write_event(event.event)
        if self._index_writer is not None:
            location = TensorLocation(
                event.tensorname,
                ModeKeys[event.get_mode()],
                event.mode_step if event.mode_step is not None else event.event.step,
                get_relative_event_file_path(self._path),
                start,
                length,
                parse_worker_name_from_file(self._path),
            )
            self._index_writer.add_index(location, crc32c(event.event.SerializeToString()))
        return [start, length]

    def flush(self) -> None:
        """Do nothing: readers see the whole file after `close`."""

    def close(self) -> None:
        """Make the event file visible, then its index file."""
        self._writer.close()

    def name(self) -> str:
        return self._writer.name()


def _event(summary: Summary, step: int, timestamp: float | None) -> Event:
    wall_time = time.time() if timestamp is None else timestamp
    return Event(wall_time=wall_time, step=int(step), summary=summary)
