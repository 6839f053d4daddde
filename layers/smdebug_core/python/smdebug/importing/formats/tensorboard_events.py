"""One event of TensorBoard: its scalars, and the hyperparameters and arguments that plugins keep in it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

from smdebug.files.wire import DELIMITED, FIXED32, FIXED64, VARINT, Malformed, fields, signed
from smdebug.importing.formats.json_files import parse_json
from smdebug.importing.records import Details, Point, whole_step
from smdebug.importing.text_values import seconds

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5  # of an event
_TAG, _SIMPLE_VALUE, _TENSOR, _METADATA = 1, 2, 8, 9  # of a value of a summary
_DTYPE, _SHAPE, _CONTENT, _FLOATS, _DOUBLES, _INTS, _TEXTS, _INT64S, _HALVES = 1, 2, 4, 5, 6, 7, 8, 10, 13
_OTHERS = {4: "images", 5: "histograms", 6: "audio"}
_FORMS = {1: "f", 2: "d", 3: "i", 9: "q", 19: "e"}  # by the number of the dtype
_PACKED = {_FLOATS: "f", _DOUBLES: "d"}
_ARGUMENTS = ("args/text_summary", "model_config/text_summary")
_SESSION_START, _HPARAMS = 3, "hparams"


def points_of_event(record: bytes, details: Details) -> Iterator[Point]:
    """Yield the scalars of an event; take its hyperparameters into the details."""
    time, step = None, 0
    summaries = []
    for number, kind, start, stop in fields(record, 0, len(record)):
        if number == _WALL_TIME and kind == FIXED64:
            time = seconds(struct.unpack_from("<d", record, start)[0])
        elif number == _STEP and kind == VARINT:
            step = signed(start)
        elif number == _SUMMARY and kind == DELIMITED:
            summaries.append((start, stop))
    at = whole_step(step)
    if at is None:
        details.leave_out("events of a negative step")
        return
    for begin, end in summaries:
        for number, kind, start, stop in fields(record, begin, end):
            if number == 1 and kind == DELIMITED:
                found = _value(record, start, stop, details)
                if found is not None:
                    yield Point(found[0], at, found[1], time)


def _value(record: bytes, start: int, stop: int, details: Details) -> tuple[str, float] | None:
    """Return the name and the number of a value; None if it is no scalar."""
    tag, number, tensor, plugin, content, other = "", None, None, "", b"", "values that are not scalars"
    for field, kind, begin, end in fields(record, start, stop):
        if field == _TAG and kind == DELIMITED:
            tag = record[begin:end].decode(errors="replace")
        elif field == _SIMPLE_VALUE and kind == FIXED32:
            number = struct.unpack_from("<f", record, begin)[0]
        elif field == _TENSOR and kind == DELIMITED:
            tensor = (begin, end)
        elif field == _METADATA and kind == DELIMITED:
            plugin, content = _plugin(record, begin, end)
        elif field in _OTHERS:
            other = _OTHERS[field]
    if plugin == _HPARAMS:
        _add_hyperparameters(content, details)
        return None
    if number is None and tensor is not None:
        if plugin == "text":
            _add_text(tag, record, tensor, details)
            return None
        number = _scalar(record, *tensor) if plugin in ("", "scalars") else None
        other = {"histograms": "histograms", "images": "images"}.get(plugin, other)
    if number is None:
        details.leave_out(other)
        return None
    return tag, number


def _plugin(record: bytes, start: int, stop: int) -> tuple[str, bytes]:
    name, content = "", b""
    for field, kind, begin, end in fields(record, start, stop):
        if field != 1 or kind != DELIMITED:
            continue
        for inner, inner_kind, first, last in fields(record, begin, end):
            if inner_kind != DELIMITED:
                continue
            if inner == 1:
                name = record[first:last].decode(errors="replace")
            elif inner == 2:
                content = record[first:last]
    return name, content


def _scalar(record: bytes, start: int, stop: int) -> float | None:
    """Return the number in a tensor of one element; None for other tensors."""
    dtype, packed = 0, []
    for field, kind, begin, end in fields(record, start, stop):
        if field == _DTYPE and kind == VARINT:
            dtype = begin
        elif field == _SHAPE and kind == DELIMITED and _size(record, begin, end) != 1:
            return None
        elif field in (_CONTENT, *_PACKED, _INTS, _INT64S, _HALVES):
            packed.append((field, kind, begin, end))
    form = _FORMS.get(dtype)
    if form is None:
        return None
    for field, kind, begin, end in packed:
        form_here = form if field == _CONTENT else _PACKED.get(field)
        if field in (_INTS, _INT64S):
            return float(signed(begin if kind == VARINT else next(_numbers(record, begin, end), 0)))
        if form_here is not None and end - begin == struct.calcsize(form_here):
            return float(struct.unpack_from(f"<{form_here}", record, begin)[0])
    return None


def _size(record: bytes, start: int, stop: int) -> int:
    size = 1
    for field, kind, begin, end in fields(record, start, stop):
        if field == 2 and kind == DELIMITED:
            lengths = [
                value for inner, form, value, _ in fields(record, begin, end) if inner == 1 and form == VARINT
            ]
            size *= lengths[0] if lengths else 0
    return size


def _numbers(record: bytes, start: int, stop: int) -> Iterator[int]:
    """Yield packed varints."""
    number = shift = 0
    for digit in record[start:stop]:
        number |= (digit & 0x7F) << shift
        shift += 7
        if digit < 0x80:
            yield number
            number = shift = 0
        elif shift > 63:
            raise Malformed(f"a number before byte {stop} has more than 64 bits")


def _add_text(tag: str, record: bytes, tensor: tuple[int, int], details: Details) -> None:
    """Take the arguments that the Trainer of transformers writes as text; note other texts."""
    texts = [record[begin:end] for field, _, begin, end in fields(record, *tensor) if field == _TEXTS]
    if tag in _ARGUMENTS and texts:
        try:
            arguments = parse_json(texts[0])
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            if tag == _ARGUMENTS[0]:
                details.config.update(arguments)
            return
    details.leave_out("texts")


def _add_hyperparameters(content: bytes, details: Details) -> None:
    """Take the hyperparameters of the session that begins, from what the plugin keeps of it."""
    for field, kind, start, stop in fields(content, 0, len(content)):
        if field != _SESSION_START or kind != DELIMITED:
            continue
        for inner, form, begin, end in fields(content, start, stop):
            if inner == 1 and form == DELIMITED:
                name, value = _entry(content, begin, end)
                details.config[name] = value


def _entry(content: bytes, start: int, stop: int) -> tuple[str, Any]:
    name, value = "", None
    for field, kind, begin, end in fields(content, start, stop):
        if field == 1 and kind == DELIMITED:
            name = content[begin:end].decode(errors="replace")
        elif field == 2 and kind == DELIMITED:
            for inner, form, first, last in fields(content, begin, end):
                if inner == 2 and form == FIXED64:
                    number = struct.unpack_from("<d", content, first)[0]
                    value = number if math.isfinite(number) else str(number)
                elif inner == 3 and form == DELIMITED:
                    value = content[first:last].decode(errors="replace")
                elif inner == 4 and form == VARINT:
                    value = bool(first)
    return name, value
