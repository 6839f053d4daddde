"""Records handed to another process through a pipe, as lines: its tool runs there, and only there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from smdebug.exceptions import SinkRefused, SMDebugError
from smdebug.sinks.delivery import Delivery
from smdebug.sinks.records import Record, RunRecord, as_line, from_line
from smdebug.sinks.sink import RunSink


class PipeSink:
    """Writes each record as a line to the pipe."""

    def __init__(self, stream: BinaryIO, tool: str):
        self.notes: list[str] = []
        self._stream = stream
        self._tool = tool

    @property
    def place(self) -> str:
        """The tool behind the pipe."""
        return self._tool

    def begin(self, run: RunRecord) -> None:
        """Say which run it is."""
        self.send([run])

    def send(self, records: Sequence[Record]) -> None:
        """Write the records."""
        try:
            self._stream.write("".join(f"{as_line(record)}\n" for record in records).encode())
            self._stream.flush()
        except (OSError, ValueError) as error:
            raise SinkRefused(self._tool, "the training, whose run it is, has ended") from error

    def end(self, *, is_complete: bool = True) -> None:
        """Close the pipe: its reader has everything."""
        try:
            self._stream.close()
        except OSError as error:
            raise SinkRefused(self._tool, "the training, whose run it is, has ended") from error


def deliver_from(
    stream: BinaryIO, sink: RunSink, report: Callable[[str], object], again: str, seconds: float
) -> None:
    """Deliver what a `PipeSink` writes until the pipe ends; the last records may take so many seconds."""
    delivery: Delivery | None = None
    for line in stream:
        try:
            record = from_line(line)
        except SMDebugError:
            continue  # something else was printed
        if delivery is None and isinstance(record, RunRecord):
            delivery = Delivery(sink, record, report, again=again)
        elif delivery is not None:
            delivery.put([record])
    if delivery is not None:
        delivery.finish(seconds)
