"""How a table fits into the columns of a terminal: as it is, with its text shortened, or row by row."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

_GAP = "  "
_LEAST = 24  # columns that are left of a text before rows are folded
_WIDEST = 72  # of a text that stands before other columns
_INDENT = "  "

Row = Sequence[str]


class Laid(NamedTuple):
    """The lines of a table: of its headings, if it has a line of them, and of its rows."""

    head: str | None
    lines: list[str]


def lay_out(
    names: Sequence[str], rows: Sequence[Row], room: int | None = None, mark: str = "…"
) -> Laid:
    """The table in lines of at most `room` columns; of any length, and with nothing cut, without a limit.

    `mark` stands where text is cut. Cells may carry colour: those are never cut.
    """
    numeric = [bool(rows) and all(is_number(row[at]) for row in rows) for at in range(len(names))]
    widths = [max(width_of(one[at]) for one in (names, *rows)) for at in range(len(names))]
    if room is None:
        return _side_by_side(names, rows, widths, numeric)
    may_shrink = [
        not numeric[at] and not any("\x1b" in row[at] for row in rows) for at in range(len(names))
    ]
    fitting = _fitting(widths, may_shrink, room)
    if fitting is None:
        return Laid(None, [line for row in rows for line in _folded(names, row, numeric, room)])
    cut_names = [cut(name, width, mark) for name, width in zip(names, fitting, strict=True)]
    cut_rows = [line for row in rows for line in _wrapped_at_the_end(row, fitting, mark)]
    return _side_by_side(cut_names, cut_rows, fitting, numeric)


def _fitting(widths: Sequence[int], may_shrink: Sequence[bool], room: int) -> list[int] | None:
    """The widths at which all columns fit side by side, the widest texts made narrower; None if none do."""
    last = len(widths) - 1
    found = [
        min(width, _WIDEST) if shrinks and at != last else width
        for at, (width, shrinks) in enumerate(zip(widths, may_shrink, strict=True))
    ]
    while sum(found) + len(_GAP) * last > room:
        shrinkable = [at for at, shrinks in enumerate(may_shrink) if shrinks and found[at] > _LEAST]
        if not shrinkable:
            return None
        found[max(shrinkable, key=found.__getitem__)] -= 1
    return found


def _side_by_side(
    names: Sequence[str], rows: Sequence[Row], widths: Sequence[int], numeric: Sequence[bool]
) -> Laid:
    head, *lines = (
        _GAP.join(map(_padded, row, widths, numeric)).rstrip() for row in (names, *rows)
    )
    return Laid(head, lines)


def _wrapped_at_the_end(row: Row, widths: Sequence[int], mark: str) -> Iterator[Row]:
    """The row with its texts cut, but for the last one, which goes on below."""
    *before, last = row
    first, *others = wrapped(last, widths[-1])
    yield [*(cut(one, width, mark) for one, width in zip(before, widths, strict=False)), first]
    for one in others:
        yield [*("" for _ in before), one]


def _folded(names: Sequence[str], row: Row, numeric: Sequence[bool], room: int) -> Iterator[str]:
    """The first cell on a line of its own, and below it what the row says else, by its names."""
    at = next((at for at, name in enumerate(names) if name), 0)
    title = f"{names[at]} {row[at]}" if numeric[at] else row[at]
    yield from wrapped(_GAP.join([*row[:at], title]), room)
    rest = [(name, value) for name, value in zip(names, row, strict=True)][at + 1 :]
    told = [value if len(rest) == 1 else f"{name}: {value}" for name, value in rest if value]
    line = ""
    for one in told:
        if line and width_of(_INDENT + line + _GAP + one) > room:
            yield from _indented(line, room)
            line = one
        else:
            line = f"{line}{_GAP}{one}" if line else one
    if line:
        yield from _indented(line, room)


def _indented(text: str, room: int) -> Iterator[str]:
    return (_INDENT + line for line in wrapped(text, room - len(_INDENT)))


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of that many columns, parted at spaces where it can be."""
    if width_of(text) <= width or "\x1b" in text:
        return [text]
    lines = []
    while width_of(text) > width:
        most = _fits(text, width)
        space = text.rfind(" ", 1, most + 1)
        at = space if space > 0 else most
        lines.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return [*lines, text] if text else lines


def cut(text: str, width: int, mark: str = "…") -> str:
    """As much of the text as takes that many columns, with a mark if that is not all."""
    if width_of(text) <= width or "\x1b" in text:
        return text
    return text[: _fits(text, width - width_of(mark))] + mark


def _fits(text: str, width: int) -> int:
    """How many letters of the text take no more columns than that; one at least."""
    taken = 0
    for at, letter in enumerate(text):
        taken += _width_of_letter(letter)
        if taken > width:
            return max(1, at)
    return len(text)


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    text = click.unstyle(text)
    return len(text) if text.isascii() else sum(map(_width_of_letter, text))


def _width_of_letter(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def is_number(text: str) -> bool:
    """Is it a number, perhaps with a unit, or nothing at all?"""
    bare = text.replace(",", "").removesuffix("%").strip()
    if not bare:
        return True
    try:
        float(bare)
    except ValueError:
        return bare.rpartition(" ")[2] in {"B", "KB", "MB", "GB", "TB"}
    return True


def _padded(text: str, width: int, right: bool) -> str:
    filling = " " * max(0, width - width_of(text))
    return filling + text if right else text + filling
