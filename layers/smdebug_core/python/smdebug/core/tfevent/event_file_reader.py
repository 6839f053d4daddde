"""For code written against smdebug that reads event files without their index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from smdebug.core.tfrecord.record_reader import RecordReader
from smdebug.files.event_reading import decode_tensor
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.files.proto.event_pb2 import Event
    from smdebug.files.proto.summary_pb2 import Summary
    from smdebug.files.proto.tensor_pb2 import TensorProto

__all__ = ["EventFileReader", "EventsReader", "get_tensor_data"]


def get_tensor_data(tensor: TensorProto) -> npt.NDArray[Any]:
    """Return the array in a tensor message."""
    return decode_tensor(tensor.SerializeToString(), file="the given message")


class EventsReader:
    """Reads the events of one file as protobuf messages."""

    def __init__(self, filename: str | os.PathLike[str]):
        self._filename = os.fspath(filename)
        self._reader = RecordReader(filename)

    def __enter__(self) -> EventsReader:
        return self

    def __exit__(self, *error: object) -> None:
        self._reader.close()

    def read_events(self, check: object = "minimal") -> Iterator[Event]:
        return self._reader.read_events(check)


class EventFileReader:
    """Reads one event file: its tensors, its summaries or its events.

    `check` is "minimal" or True (lengths and footers), "full" (each footer is a true checksum), else none.
    """

    def __init__(self, fname: str | os.PathLike[str]):
        self._filename = os.fspath(fname)
        self._reader = RecordReader(fname)

    def __enter__(self) -> EventFileReader:
        return self

    def __exit__(self, *error: object) -> None:
        self._reader.close()

    def read_tensors(
        self, check: object = "minimal"
    ) -> Iterator[tuple[str, int, Any, ModeKeys, int]]:
        """Yield name, step, value, mode and mode step of each tensor."""
        return self._reader.read_tensors(check)

    def read_summaries(self, check: object = "minimal") -> Iterator[tuple[int, Summary]]:
        """Yield step and summary of each event that has a summary."""
        return self._reader.read_summaries(check)

    def read_events(self, check: object = "minimal") -> Iterator[Event]:
        """Yield each event as a protobuf message."""
        return self._reader.read_events(check)
