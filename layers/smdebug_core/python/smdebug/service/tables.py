"""Lists that print as tables in a terminal and in a notebook, and values as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from html import escape
from typing import Any, TypeVar

from smdebug.plain_text import escaped

T = TypeVar("T")

_WIDEST = 60
_MOST_LINES = 60
_MOST_ROWS = 500


class Rows(list[T]):
    """A list of values of one kind, shown as a table of some of their attributes."""

    def __init__(self, values: Iterable[T], columns: Sequence[str], nothing: str = "nothing"):
        super().__init__(values)
        self.columns = tuple(columns)
        self._nothing = nothing

    def to_dict(self) -> list[dict[str, Any]]:
        """Each value as plain data."""
        return [plain(value) for value in self]

    def __repr__(self) -> str:
        if not self:
            return self._nothing
        lines = [self.columns, *(self._cells(value) for value in self[:_MOST_LINES])]
        cut = [[_cut(text) for text in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
        shown = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in cut
        ]
        return "\n".join([*shown, *self._line_of_hidden(_MOST_LINES)])

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>{escape(self._nothing)}</p>"
        head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in self.columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in self._cells(value)) + "</tr>"
            for value in self[:_MOST_ROWS]
        )
        rest = "".join(f"<p>{line}</p>" for line in self._line_of_hidden(_MOST_ROWS))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"

    def _cells(self, value: T) -> tuple[str, ...]:
        return tuple(
            cell(value.get(name) if isinstance(value, Mapping) else getattr(value, name))
            for name in self.columns
        )

    def _line_of_hidden(self, shown: int) -> list[str]:
        return [f"… and {len(self) - shown} more"] if len(self) > shown else []


class PlainData:
    """A dataclass that is also plain data."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON has them, times as strings in UTC."""
        return {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]
            if field.repr
        }


def cell(value: Any) -> str:
    """A value as a table shows it: on one line, without control characters."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case Enum():
            return str(value.value)
        case Mapping():
            return ", ".join(f"{cell(content)} {cell(key)}" for key, content in value.items())
        case list() | tuple() | frozenset():
            return ", ".join(map(cell, value))
    return escaped(" ".join(str(value).split()))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case Mapping():
            return {str(plain(key)): plain(content) for key, content in value.items()}
        case frozenset() | set():
            return sorted(map(plain, value))
        case list() | tuple():
            return [plain(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def moment(seconds: float | None) -> datetime | None:
    """A time in seconds as a date in UTC, or None if it is unknown."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
