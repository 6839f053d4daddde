"""Records of TensorBoard's files: scalars, histograms, images, text and the graph.

Footers are true checksums here, because TensorBoard's reader insists on them.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache, partial
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from smdebug.exceptions import SMDebugTypeError
from smdebug.files.framing import EncodedRecord, frame
from smdebug.files.wire import delimited, varint

_float = struct.Struct("<f").pack
_double = struct.Struct("<d").pack

_BLOCK: Final = 65_536  # values counted at a time, which fit into the processor's cache
_ALONE: Final = 8_192  # for a longer `dot`, BLAS would take processors from the training
_LOWER_BITS: Final = 14  # of a float32, which do not affect its bucket
_UNCLEAR: Final = 0xFFFF
_UNWELCOME: Final = re.compile(r"[^-/\w.]")


class Serializable(Protocol):
    """Any protobuf message."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802


class Histogram(NamedTuple):
    """The distribution of finite values: `counts[i]` of them are from `limits[i - 1]` up to `limits[i]`."""

    minimum: float
    maximum: float
    number: int
    sum: float
    sum_of_squares: float
    limits: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]


def clean_tag(name: str) -> str:
    """Return `name` as TensorBoard accepts it: `dense_0` for `dense:0`."""
    return _UNWELCOME.sub("_", name).lstrip("/")


def encode_scalar(tag: str, value: float, *, step: int, wall_time: float) -> EncodedRecord:
    """Return one point of a curve. A value beyond float32 becomes infinite."""
    value = float(value)
    try:
        number = _float(value)
    except OverflowError:
        number = _float(math.copysign(math.inf, value))
    return _summary(tag, b"\x15" + number, step, wall_time)


def encode_histogram(tag: str, array: npt.NDArray[Any], *, step: int, wall_time: float) -> EncodedRecord:
    """Return the histogram of a tensor's finite values, in fixed buckets that grow by a tenth."""
    return encode_distribution(tag, histogram_of(array), step=step, wall_time=wall_time)


def encode_distribution(tag: str, histogram: Histogram, *, step: int, wall_time: float) -> EncodedRecord:
    """Return the record of a histogram."""
    fields = bytearray()
    for key, number in zip(b"\x09\x11\x19\x21\x29", histogram[:5], strict=True):
        packed = _double(number)
        if packed != b"\0\0\0\0\0\0\0\0":
            fields.append(key)
            fields += packed
    for tag_of_list, numbers in ((b"\x32", histogram.limits), (b"\x3a", histogram.counts)):
        if numbers.size:
            fields += delimited(tag_of_list, numbers.astype("<f8", copy=False).tobytes())
    return _summary(tag, delimited(b"\x2a", bytes(fields)), step, wall_time)


def encode_image(
    tag: str, png: bytes, shape: tuple[int, int, int], *, step: int, wall_time: float
) -> EncodedRecord:
    """Return the record of an image of that height, width and number of channels."""
    fields = b"".join(bytes((key,)) + varint(size) for key, size in zip(b"\x08\x10\x18", shape, strict=True))
    return _summary(tag, delimited(b"\x22", fields + delimited(b"\x22", png)), step, wall_time)


def encode_text(tag: str, text: str, *, step: int, wall_time: float) -> EncodedRecord:
    """Return the record of a text, which TensorBoard shows as Markdown."""
    tensor = b"\x08\x07" + delimited(b"\x12", delimited(b"\x12", b"\x08\x01"))  # one string
    tensor += delimited(b"\x42", text.encode("utf-8", "replace"))
    plugin = delimited(b"\x4a", delimited(b"\x0a", delimited(b"\x0a", b"text")))
    return _summary(tag, plugin + delimited(b"\x42", tensor), step, wall_time)


def encode_graph(graph: bytes | Serializable, *, wall_time: float, step: int = 0) -> EncodedRecord:
    """Return the record of a model's graph, from a `GraphDef` message or its bytes."""
    definition = graph if isinstance(graph, bytes) else graph.SerializeToString()
    return _event(delimited(b"\x22", definition), step, wall_time)


def histogram_of(array: npt.NDArray[Any], edges: npt.NDArray[np.float64] | None = None) -> Histogram:
    """Return the distribution of the finite values of `array`; of complex numbers, the real parts."""
    if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
        raise SMDebugTypeError(f"There is no histogram of {array.dtype}, only of numbers")
    if array.dtype.kind == "c":
        array = array.real
    values = array.reshape(-1)
    wide_enough: type[np.floating[Any]] = np.float64
    if edges is None and _is_within_float32(values.dtype):
        wide_enough, edges, count = np.float32, default_edges(), _count_by_table
    else:
        edges = default_edges() if edges is None else edges
        count = partial(_count_by_sorting, edges)
    counts = np.zeros(len(edges) - 1, np.int64)
    minimum, maximum, number, total, squares = math.inf, -math.inf, 0, 0.0, 0.0
    for start in range(0, len(values), _BLOCK):
        with np.errstate(invalid="ignore"):  # signalling NaNs, which are removed below
            block = values[start : start + _BLOCK].astype(wide_enough, order="C", copy=False)
            least, greatest = float(block.min()), float(block.max())
        if not (math.isfinite(least) and math.isfinite(greatest)):
            block = block[np.isfinite(block)]
            if not block.size:
                continue
            least, greatest = float(block.min()), float(block.max())
        minimum, maximum = min(minimum, least), max(maximum, greatest)
        number += block.size
        with np.errstate(over="ignore"):
            exact = block.astype(np.float64, copy=False)
            total += float(exact.sum())
            for at in range(0, exact.size, _ALONE):
                part = exact[at : at + _ALONE]
                squares += float(part.dot(part))
        counts += count(block)
    if not number:
        return Histogram(0.0, 0.0, 0, 0.0, 0.0, edges[:0], edges[:0])
    filled = np.flatnonzero(counts)
    if not filled.size:  # all beyond the outermost buckets
        return Histogram(minimum, maximum, number, total, squares, edges[:0], edges[:0])
    # TensorBoard needs the edge before the first filled bucket, with a count of 0.
    first, last = filled[0], filled[-1] + 1
    shown = np.concatenate(([0.0], counts[first:last]))
    return Histogram(minimum, maximum, number, total, squares, edges[first : last + 1], shown)


def _is_within_float32(dtype: np.dtype[Any]) -> bool:
    """Whether float32 holds every value of the type."""
    return dtype.name in ("float32", "float16", "bfloat16", "bool") or (
        dtype.kind in "iu" and dtype.itemsize <= 2
    )


def _count_by_sorting(edges: npt.NDArray[np.float64], block: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Count these finite values per bucket; the last bucket includes its upper edge."""
    values = np.sort(block)
    below = np.searchsorted(values, edges)
    below[-1] = np.searchsorted(values, edges[-1], side="right")
    return np.diff(below).astype(np.int64)


def _count_by_table(block: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Count float32 values in the default buckets, which their upper bits identify.

    Only values whose upper bits they share with an edge are compared with it.
    """
    edges, (table, lower) = default_edges(), _bucket_tables()
    upper_bits = block.view(np.uint32) >> _LOWER_BITS
    buckets = table.take(upper_bits)
    unclear = np.flatnonzero(buckets == _UNCLEAR)
    if unclear.size:
        below = lower.take(upper_bits[unclear])
        buckets[unclear] = below + (block[unclear] >= edges.take(below))
    return np.bincount(buckets.astype(np.intp), minlength=len(edges) + 1)[1:-1]


@cache
def _bucket_tables() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """Return the bucket of the float32 values with these upper bits, if all share it, and the lowest one.

    Buckets count from 1; 0 is below all of them, and one more than there are above.
    """
    first = np.arange(1 << (32 - _LOWER_BITS), dtype=np.uint32) << _LOWER_BITS
    last = first | np.uint32((1 << _LOWER_BITS) - 1)
    with np.errstate(invalid="ignore"):
        lowest, highest = (
            np.searchsorted(default_edges(), bits.view(np.float32), side="right").astype(np.uint16)
            for bits in (first, last)
        )
    table = np.where(lowest == highest, lowest, np.uint16(_UNCLEAR))
    lower = np.minimum(lowest, highest)
    table.flags.writeable = lower.flags.writeable = False  # all callers share them
    return table, lower


@cache
def default_edges() -> npt.NDArray[np.float64]:
    """1e-12 times the powers of 1.1 up to 1e20, their negatives, and 0."""
    positive = []
    edge = 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    edges = np.array([*(-edge for edge in reversed(positive)), 0.0, *positive])
    edges.flags.writeable = False  # all callers share it
    return edges


def _summary(tag: str, value: bytes, step: int, wall_time: float) -> EncodedRecord:
    tagged = delimited(b"\x0a", clean_tag(tag).encode("utf-8", "replace")) + value
    return _event(delimited(b"\x2a", delimited(b"\x0a", tagged)), step, wall_time)


def _event(what: bytes, step: int, wall_time: float) -> EncodedRecord:
    step_field = b"\x10" + varint(step) if step else b""
    return frame(b"\x09" + _double(wall_time) + step_field + what, "tfrecord")
