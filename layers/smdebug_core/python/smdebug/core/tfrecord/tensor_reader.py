"""For code written against smdebug that has a file of records in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from smdebug.files.checksum import Buffer
from smdebug.files.event_reading import Check, decode_event, record_spans
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.files.proto.event_pb2 import Event
    from smdebug.files.proto.summary_pb2 import Summary

__all__ = ["TensorReader"]

_CHECKS: dict[object, Check] = {"minimal": "minimal", True: "minimal", "full": "full"}


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
        self.position += stop + 4
        return bytes(rest[start:stop])

    def read_tensors(
        self, check: object = "minimal"
    ) -> Iterator[tuple[str, int, Any, ModeKeys, int]]:
        """Yield name, step, value, mode and mode step of each tensor; without a mode, GLOBAL and the step."""
        while self.has_data():
            event = decode_event(self.read_record(check), file=self._file)
            mode = ModeKeys.GLOBAL if event.mode is None else event.mode
            mode_step = event.step if event.mode_step is None else event.mode_step
            yield event.name, event.step, event.value, mode, mode_step

    def read_events(self, check: object = "minimal") -> Iterator[Event]:
        """Yield each record as a protobuf message."""
        from google.protobuf.message import DecodeError

        from smdebug.exceptions import DamagedFile
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
