"""For code written against smdebug that makes tensor messages itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from smdebug.files.dtypes import STRING, dtype_number
from smdebug.files.event_writing import encode_event
from smdebug.files.framing import FOOTER_SIZE, HEADER_SIZE
from smdebug.files.proto.event_pb2 import Event
from smdebug.files.proto.tensor_pb2 import TensorProto
from smdebug.files.proto.types_pb2 import DataType
from smdebug.mode_keys import ModeKeys

__all__ = ["make_tensor_proto"]


def _get_proto_dtype(npdtype: np.dtype[Any]) -> tuple[bool, str]:
    """Return whether a dtype is numeric, and its name: (True, "DT_FLOAT")."""
    number = dtype_number(npdtype)
    return number != STRING, DataType.Name(number)


def make_tensor_proto(nparray_data: npt.NDArray[Any], tag: str) -> TensorProto:
    """Return the message that holds the array under that tag in an event file."""
    record = encode_event(tag, nparray_data, step=0, wall_time=0, mode=ModeKeys.GLOBAL, mode_step=0)
    event = Event.FromString(b"".join(record.pieces)[HEADER_SIZE:-FOOTER_SIZE])
    return event.summary.value[0].tensor
