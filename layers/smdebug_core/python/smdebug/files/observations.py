"""What a run keeps of the tensors that it does not save whole, as ordinary tensors with reserved names.

    smdebug/statistics/<kind>   float32 [tensors, statistics]   a row per tensor, columns as in numbers.rows
    smdebug/samples/<kind>      float32 [tensors, values]       padded with NaN
    smdebug/digests/<kind>      int64 [tensors, 2]          of `parts`: a row per parameter, if sharded
    smdebug/parts/<kind>        float64 [tensors, numbers]  of sharded tensors: `numbers.rows.MEASURED` of the
                                                            part that the worker holds; rows of NaN for others
    smdebug/series/<name>       float64 [values, 4]             step, mode, step of the mode, value
    smdebug/facts               uint8, JSON                     what is true of the step
    smdebug/layout              uint8, JSON                     the names of the rows, where they change

The `meta` of an index file holds `root_digests`: one digest over all digests of each kind, so that copies
of a model are compared without reading a tensor (`files.replicas`).

A reader of the old library sees tensors like any others. The facts of a step name the step its layout was
written at, so names are stored once and any step can be read without those between.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import DamagedFile
from smdebug.files.names import FACTS as FACTS
from smdebug.files.names import FIRST_LEARNING_RATE as FIRST_LEARNING_RATE
from smdebug.files.names import LEARNING_RATES as LEARNING_RATES
from smdebug.files.names import OBSERVATIONS
from smdebug.files.names import SERIES as SERIES
from smdebug.files.names import SYSTEM as SYSTEM

LAYOUT = f"{OBSERVATIONS}layout"
STATISTICS = f"{OBSERVATIONS}statistics/"
SAMPLES = f"{OBSERVATIONS}samples/"
DIGESTS = f"{OBSERVATIONS}digests/"
MEASURED_PARTS = f"{OBSERVATIONS}parts/"
PARAMETERS, GRADIENTS, UPDATES = "parameters", "gradients", "updates"
INPUTS, OUTPUTS = "inputs", "outputs"
PARTS = "parts"
"""The kind of the digests of what a worker holds of sharded parameters: they differ by design."""
SERIES_COLUMNS = ("step", "mode", "mode_step", "value")
VERSION = 1
LOSS_SHOULD_FALL = "loss_should_fall"  # the fact of a supervised training whose criterion is not known
COMPUTED_TWICE = "computed_twice"  # the fact with what passes gave that were computed again
RANK_TIMES = "rank_times"  # the fact with the times of a rank's steps: rows of `numbers.rank_times`
ARGUMENTS = "arguments"  # the fact with the arguments of a trainer
#: Longer texts are damage, or an attack: 10**5 tensors with names of 300 letters take half of it.
MAX_JSON_BYTES = 64 << 20
Bytes = NDArray[np.uint8]
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class ObservedTensor:
    """A row of a layout: which tensor, and what never changes of it."""

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = ""

    @property
    def size(self) -> int:
        """How many values it has."""
        size = 1
        for length in self.shape:
            size *= length
        return size


class Rows(tuple[ObservedTensor, ...]):
    """The tensors of one kind, with their names, which all steps of a layout share."""

    @cached_property
    def names(self) -> list[str]:
        """Their names, in their order. Do not modify."""
        return [tensor.name for tensor in self]

    @cached_property
    def places(self) -> dict[str, int]:
        """The row of each name."""
        return {name: place for place, name in enumerate(self.names)}


@dataclass(frozen=True)
class ObservationLayout:
    """Which tensor each row of each kind belongs to, and facts that hold until the next layout."""

    tensors: Mapping[str, tuple[ObservedTensor, ...]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def names(self, kind: str) -> list[str]:
        """The names of the rows of that kind, in their order."""
        return [tensor.name for tensor in self.tensors.get(kind, ())]

    def to_array(self) -> Bytes:
        """The layout as it is saved."""
        rows = {
            kind: [[tensor.name, list(tensor.shape), tensor.dtype] for tensor in tensors]
            for kind, tensors in self.tensors.items()
        }
        return json_array({"version": VERSION, "tensors": rows, "facts": dict(self.facts)})

    @classmethod
    def from_array(cls, array: NDArray[Any], place: str) -> ObservationLayout:
        """The layout that an array holds; `DamagedFile`, naming `place`, if it holds none."""
        payload = json_object(array, place)
        kinds = payload.get("tensors")
        if not isinstance(kinds, dict):
            raise DamagedFile(place, "the layout of its statistics names no tensors")
        tensors = {
            str(kind): Rows(_tensor(row, place) for row in _rows(rows, place)) for kind, rows in kinds.items()
        }
        facts = payload.get("facts")
        return cls(tensors, _without_secrets(facts) if isinstance(facts, dict) else {})


def _without_secrets(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts; older versions kept secrets in the arguments of a trainer."""
    given = facts.get(ARGUMENTS)
    if not given:
        return facts
    from smdebug.secrets.data import redacted_data  # few frameworks have a trainer

    return {**facts, ARGUMENTS: redacted_data(given)}


def json_array(payload: Mapping[str, Any]) -> Bytes:
    """The payload's JSON as the bytes of an array. Numbers without a JSON form become their texts."""
    try:
        text = _ENCODER.encode(payload)
    except (TypeError, ValueError):
        text = _ENCODER.encode(_plain(payload))
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def json_object(array: NDArray[Any], place: str) -> dict[str, Any]:
    """The JSON object that an array of bytes holds; `DamagedFile`, naming `place`, if it holds none."""
    if array.dtype != np.uint8 or array.ndim != 1 or array.size > MAX_JSON_BYTES:
        raise DamagedFile(place, f"JSON text cannot be {array.dtype} of shape {array.shape}")
    try:
        payload = json.loads(array.tobytes().decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(place, f"its JSON cannot be read: {error}") from error
    if not isinstance(payload, dict):
        raise DamagedFile(place, f"its JSON is not an object but {type(payload).__name__}")
    return payload


def matrix(array: NDArray[Any], rows: int, columns: int, dtype: Any, place: str) -> NDArray[Any]:
    """The array, if it is a matrix of that form; `DamagedFile`, naming `place`, if not.

    A matrix with fewer columns was written before the last ones existed: they are padded with NaN.
    """
    if array.ndim != 2 or len(array) != rows or array.dtype != np.dtype(dtype):
        raise DamagedFile(
            place,
            f"it should have {rows} rows of {np.dtype(dtype)}, and is {array.dtype} of shape {array.shape}",
        )
    if array.shape[1] >= columns:
        return array[:, :columns]
    wide = np.full((rows, columns), np.nan, dtype)
    wide[:, : array.shape[1]] = array
    return wide


def _plain(value: Any) -> Any:
    """The value in JSON's types: an infinite number, or an object JSON does not know, as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return str(value)[:200]


def _rows(rows: Any, place: str) -> Iterable[Any]:
    if not isinstance(rows, list):
        raise DamagedFile(place, "the layout of its statistics is not a list of tensors")
    return rows


def _tensor(row: Any, place: str) -> ObservedTensor:
    match row:
        case [str(name), [*shape], str(dtype)] if all(_is_length(length) for length in shape):
            return ObservedTensor(name, tuple(shape), dtype)
    raise DamagedFile(place, f"{row!r:.200} is not a row of a layout")


def _is_length(length: Any) -> bool:
    return type(length) is int and length >= 0
