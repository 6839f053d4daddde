"""Event files, written and read as protobuf messages."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from smdebug.compatibility.index_files import EventWithIndex, IndexWriter
from smdebug.compatibility.old_file import OldFile
from smdebug.compatibility.records import RecordReader, RecordWriter
from smdebug.compatibility.utils import get_relative_event_file_path, parse_worker_name_from_file
from smdebug.exceptions import SMDebugTypeError
from smdebug.files.checksum import crc32c
from smdebug.files.event_reading import decode_tensor
from smdebug.files.proto.event_pb2 import Event
from smdebug.mode_keys import ModeKeys
from smdebug.trials.live.index_reader import TensorLocation

if TYPE_CHECKING:
    from smdebug.files.proto.summary_pb2 import Summary
    from smdebug.files.proto.tensor_pb2 import TensorProto
    from smdebug.files.tensorboard import Serializable


def get_tensor_data(tensor: TensorProto) -> npt.NDArray[Any]:
    """Return the array in a tensor message."""
    return decode_tensor(tensor.SerializeToString(), file="the given message")


class EventsReader(RecordReader):
    """Reads the events of one file as protobuf messages."""


class EventFileReader(RecordReader):
    """Reads one event file: its tensors, its summaries or its events."""


class EventsWriter(OldFile):
    """Writes events to one file. It appears on `close`, and its index file after it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        index_writer: IndexWriter | None = None,
        verbose: bool = False,
        write_checksum: bool = False,
    ):
        self._filename = os.fspath(path)
        self.index_writer = index_writer
        self.verbose = verbose
        self.write_checksum = write_checksum
        self.tfrecord_writer: RecordWriter | None = None

    def init(self) -> RecordWriter:
        """Begin the file, as the first event does."""
        if self.tfrecord_writer is None:
            self.tfrecord_writer = RecordWriter(self._filename, self.write_checksum)
        return self.tfrecord_writer

    def write_event(self, event: Event) -> list[int]:
        """Append the event and return the place of its record: [start, length]."""
        if not isinstance(event, Event):
            raise SMDebugTypeError(f"expected an event_pb2.Event proto, but got {type(event)}")
        return self.init().write_record(event.SerializeToString())

    def close(self) -> None:
        """Make the event file visible, then its index file."""
        if self.tfrecord_writer is not None:
            self.tfrecord_writer.close()
        if self.index_writer is not None:
            self.index_writer.close()

    def name(self) -> str:
        return self._filename


class EventFileWriter(EventsWriter):
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
        super().__init__(path, index_writer, verbose, write_checksum)

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
            return super().write_event(event)
        start, length = super().write_event(event.event)
        if self.index_writer is not None:
            location = TensorLocation(
                event.tensorname,
                ModeKeys[event.get_mode()],
                event.mode_step if event.mode_step is not None else event.event.step,
                get_relative_event_file_path(self._filename),
                start,
                length,
                parse_worker_name_from_file(self._filename),
            )
            self.index_writer.add_index(location, crc32c(event.event.SerializeToString()))
        return [start, length]


def _event(summary: Summary, step: int, timestamp: float | None) -> Event:
    wall_time = time.time() if timestamp is None else timestamp
    return Event(wall_time=wall_time, step=int(step), summary=summary)
