"""Files of records, read and written without an index: `smdebug.files.framing` frames the records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from smdebug.compatibility.old_file import OldFile, place_of
from smdebug.exceptions import DamagedFile, SMDebugValueError, StorageError
from smdebug.files.checksum import CHECKSUM_MAGIC_BYTES as CHECKSUM_MAGIC_BYTES
from smdebug.files.checksum import Buffer, crc32c, masked
from smdebug.files.event_parsing import Event as SavedTensor
from smdebug.files.event_reading import Check, decode_event, record_spans
from smdebug.files.framing import FOOTER_SIZE, Checksum, frame
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.files.proto.event_pb2 import Event
    from smdebug.files.proto.summary_pb2 import Summary

_CHECKS: dict[object, Check] = {"minimal": "minimal", True: "minimal", "full": "full"}


def u32(x: int) -> int:
    """Return the lower 32 bits of `x`."""
    return x & 0xFFFFFFFF


def masked_crc32c(data: Buffer) -> int:
    """Return the checksum of `data` as files of records store it."""
    return masked(crc32c(data))


class RecordWriter(OldFile):
    """Writes records to one file or object, which appears on `close`."""

    def __init__(self, path: str | os.PathLike[str], write_checksum: bool = False):
        self.write_checksum = write_checksum
        self._checksum: Checksum = "tfrecord" if write_checksum else "constant"
        storage, key = place_of(path)
        self._sink = storage.create(key)
        self._position = 0
        self._closed = False

    def write_record(self, event_str: bytes) -> list[int]:
        """Append a record of those bytes and return its place: [start, length]."""
        record = frame(event_str, self._checksum)
        self._sink.write(record.pieces)
        start, self._position = self._position, self._position + record.length
        return [start, record.length]

    def close(self) -> None:
        """Make the file visible under its name."""
        if not self._closed:
            self._closed = True
            self._sink.commit()


class TensorReader:
    """Reads records one after the other from bytes.

    `check` is "minimal" or True (lengths and footers), "full" (each footer is a true checksum), else none.
    """

    def __init__(self, data: Buffer, file: str = "the given bytes"):
        self.data = data
        self.position = 0
        self.max_pos = len(data)
        self._file = file

    def has_data(self) -> bool:
        """Return whether there is another record."""
        return self.position < self.max_pos

    def read_record(self, check: object = "minimal") -> bytes:
        """Return the content of the next record."""
        rest = memoryview(self.data)[self.position :]
        start, stop = next(record_spans(rest, file=self._file, check=_CHECKS.get(check, "none")))
        self.position += stop + FOOTER_SIZE
        return bytes(rest[start:stop])

    def decoded(self, check: object) -> Iterator[SavedTensor]:
        """Yield each record as the tensor in it."""
        while self.has_data():
            yield decode_event(self.read_record(check), file=self._file)

    def read_tensors(self, check: object = "minimal") -> Iterator[tuple[str, int, Any, ModeKeys, int]]:
        """Yield name, step, value, mode and mode step of each tensor; without a mode, GLOBAL and the step."""
        for event in self.decoded(check):
            mode = ModeKeys.GLOBAL if event.mode is None else event.mode
            mode_step = event.step if event.mode_step is None else event.mode_step
            yield event.name, event.step, event.value, mode, mode_step

    def read_events(self, check: object = "minimal") -> Iterator[Event]:
        """Yield each record as a protobuf message."""
        from google.protobuf.message import DecodeError

        from smdebug.files.proto.event_pb2 import Event

        while self.has_data():
            at = self.position
            record = self.read_record(check)
            try:
                event = Event.FromString(record)
            except DecodeError as error:
                problem = f"the record at byte {at} is not an event: {error}"
                raise DamagedFile(self._file, problem) from error
            yield event

    def read_summaries(self, check: object = "minimal") -> Iterator[tuple[int, Summary]]:
        """Yield step and summary of each record that has a summary."""
        for event in self.read_events(check):
            if event.HasField("summary"):
                yield event.step, event.summary


class RecordReader(TensorReader, OldFile):
    """Reads the records of one file or object, one after the other."""

    def __init__(self, path: str | os.PathLike[str]):
        storage, key = place_of(path)
        try:
            data = storage.view(key)
        except StorageError as error:
            raise SMDebugValueError(f"failed to open {os.fspath(path)}: {error}") from error
        super().__init__(data, os.fspath(path))
