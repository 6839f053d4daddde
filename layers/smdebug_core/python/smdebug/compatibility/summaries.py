"""Messages of tensors and of TensorBoard's summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.files.dtypes import STRING, dtype_number
from smdebug.files.event_writing import as_saved_array, encode_event
from smdebug.files.framing import FOOTER_SIZE, HEADER_SIZE
from smdebug.files.proto.event_pb2 import Event
from smdebug.files.proto.summary_pb2 import HistogramProto, Summary
from smdebug.files.proto.tensor_pb2 import TensorProto
from smdebug.files.proto.types_pb2 import DataType
from smdebug.files.tensorboard import clean_tag, default_edges, histogram_of
from smdebug.mode_keys import ModeKeys


def scalar_summary(tag: str, scalar: Any) -> Summary:
    """Return a summary with one point of a curve."""
    array = as_saved_array(scalar)
    if array.size != 1:
        raise SMDebugRuntimeError(f"scalar should be 0D, and {tag} has shape {array.shape}")
    value = float(array.reshape(-1)[0])
    return Summary(value=[Summary.Value(tag=clean_tag(tag), simple_value=value)])


def histogram_summary(
    tag: str,
    values: Any,
    bins: Sequence[float] | str | None = "default",
    max_bins: int | None = None,
) -> Summary:
    """The distribution of values in the given bins, joined so that there are no more than `max_bins`."""
    array = as_saved_array(values)
    if not array.size:
        raise SMDebugValueError("The input has no element.")
    edges = default_edges() if bins is None or isinstance(bins, str) else np.asarray(bins, float)
    if max_bins is not None and len(edges) - 1 > max_bins > 0:
        every = -(-(len(edges) - 1) // max_bins)
        edges = np.append(edges[:-1:every], edges[-1])
    found = histogram_of(array, edges)
    histogram = HistogramProto(
        min=found.minimum,
        max=found.maximum,
        num=found.number,
        sum=found.sum,
        sum_squares=found.sum_of_squares,
        bucket_limit=_plain(found.limits),
        bucket=_plain(found.counts),
    )
    return Summary(value=[Summary.Value(tag=clean_tag(tag), histo=histogram)])


def _plain(numbers: npt.NDArray[np.float64]) -> list[float]:
    plain: list[float] = numbers.tolist()
    return plain


def _get_default_bins() -> list[float]:
    return _plain(default_edges())


def _get_proto_dtype(npdtype: np.dtype[Any]) -> tuple[bool, str]:
    """Return whether a dtype is numeric, and its name: (True, "DT_FLOAT")."""
    number = dtype_number(npdtype)
    return number != STRING, DataType.Name(number)


def make_tensor_proto(nparray_data: npt.NDArray[Any], tag: str) -> TensorProto:
    """Return the message that holds the array under that tag in an event file."""
    record = encode_event(tag, nparray_data, step=0, wall_time=0, mode=ModeKeys.GLOBAL, mode_step=0)
    event = Event.FromString(b"".join(record.pieces)[HEADER_SIZE:-FOOTER_SIZE])
    return event.summary.value[0].tensor
