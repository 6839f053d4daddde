"""For code written against smdebug that writes protobuf events to a file itself."""

from __future__ import annotations

import os

from smdebug.core.tfevent.index_file_writer import IndexWriter
from smdebug.core.tfrecord.record_writer import RecordWriter
from smdebug.exceptions import SMDebugTypeError
from smdebug.files.proto.event_pb2 import Event

__all__ = ["EventsWriter"]


class EventsWriter:
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

    def __enter__(self) -> EventsWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def init(self) -> None:
        """Begin the file, as the first event does."""
        if self.tfrecord_writer is None:
            self.tfrecord_writer = RecordWriter(self._filename, self.write_checksum)

    def write_event(self, event: Event) -> list[int]:
        """Append the event and return the place of its record: [start, length]."""
        if not isinstance(event, Event):
            raise SMDebugTypeError(f"expected an event_pb2.Event proto, but got {type(event)}")
        self.init()
        assert self.tfrecord_writer is not None
        return self.tfrecord_writer.write_record(event.SerializeToString())

    def flush(self) -> None:
        """Do nothing: readers see the whole file after `close`."""

    def close(self) -> None:
        """Make the event file visible, then its index file."""
        if self.tfrecord_writer is not None:
            self.tfrecord_writer.close()
        if self.index_writer is not None:
            self.index_writer.close()

    def name(self) -> str:
        return self._filename
