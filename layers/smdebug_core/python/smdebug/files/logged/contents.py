"""The values in files of `logged/` that are JSON, and what a reader gets of each kind.

    text              {"text": "…"}
    table             {"columns": ["…"], "rows": [[1, "…", null]]}
    confusion_matrix  {"classes": ["cat", "dog"], "counts": [[9, 1], [2, 8]]}    a row for each true class
    histogram         {"counts": [3, 5], "edges": [0.0, 0.5, 1.0], "not_finite": 0}

Cells of tables are texts, numbers, booleans and null. A number that is not finite is a text: "nan", "-inf".
"""

from __future__ import annotations

import json
import math
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.files.logged.catalog import AUDIO, CONFUSION, HISTOGRAM, IMAGE, MOST_BYTES_OF_TEXT, TABLE, TEXT
from smdebug.files.logged.png import decode_png
from smdebug.files.logged.sound import decode_wav
from smdebug.files.notes.json_object import object_in

LONGEST_CELL = 2000


def encode_value(content: dict[str, Any]) -> bytes:
    """Return a value as JSON."""
    return (json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def checked_value(kind: str, data: bytes, place: str) -> dict[str, Any]:
    """Return the JSON of a value, if it has the form of its kind; else raise `DamagedFile`."""
    content = object_in(data, place, MOST_BYTES_OF_TEXT)
    if not _CHECKS[kind](content):
        raise DamagedFile(place, f"its JSON is no {kind.replace('_', ' ')}")
    return content


def decoded(kind: str, data: bytes, place: str) -> Any:
    """Return a value as Python has it: pixels, a text, a list of rows, a dictionary, samples and rate."""
    if kind == IMAGE:
        return decode_png(data, place)
    if kind == AUDIO:
        return decode_wav(data, place)
    content = checked_value(kind, data, place)
    if kind == TEXT:
        return content["text"]
    if kind == TABLE:
        return [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]
    return content


def _is_text(content: dict[str, Any]) -> bool:
    return isinstance(content.get("text"), str)


def _is_table(content: dict[str, Any]) -> bool:
    columns, rows = content.get("columns"), content.get("rows")
    return (
        _is_list_of(columns, str)
        and isinstance(rows, list)
        and all(isinstance(row, list) and len(row) == len(columns) for row in rows)  # type: ignore[arg-type]
        and all(cell is None or isinstance(cell, str | int | float) for row in rows for cell in row)
    )


def _is_confusion(content: dict[str, Any]) -> bool:
    classes, counts = content.get("classes"), content.get("counts")
    return (
        _is_list_of(classes, str)
        and isinstance(counts, list)
        and len(counts) == len(classes)  # type: ignore[arg-type]
        and all(_are_counts(row) and len(row) == len(counts) for row in counts)
    )


def _is_histogram(content: dict[str, Any]) -> bool:
    counts, edges = content.get("counts"), content.get("edges")
    return (
        _are_counts(counts)
        and _is_list_of(edges, int | float)
        and len(edges) == len(counts) + 1  # type: ignore[arg-type]
        and all(math.isfinite(edge) for edge in edges)  # type: ignore[union-attr]
        and _are_counts([content.get("not_finite", 0)])
    )


def _is_list_of(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


_CHECKS = {TEXT: _is_text, TABLE: _is_table, CONFUSION: _is_confusion, HISTOGRAM: _is_histogram}
