"""Fit a table to the width of a terminal: unchanged, with text shortened, or row by row."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from smdebug.cli.answers.colours import is_styled, without_markers

GAP = "  "
_MIN_TEXT = 24  # columns of a text below which rows are folded
_MAX_TEXT = 72  # columns of a text before other columns
_INDENT = "  "

Row = Sequence[str]


class TableLines(NamedTuple):
    """The lines of a table: its heading, if it has one, and its rows, each made when it is taken."""

    head: str | None
    lines: Iterator[str]


def lay_out(
    names: Sequence[str], rows: Iterable[Row], room: int | None = None, mark: str = "…"
) -> TableLines:
    """Return the table in lines of at most `room` columns; without `room`, nothing is cut.

    `mark` shows where text was cut. Coloured cells are never cut. The rows are gone through twice, once for
    the widths of the columns, and none is kept.
    """
    numeric, widths, may_shrink = _columns_of(names, rows)
    if room is None:
        return _side_by_side(names, rows, widths, numeric)
    fitting = _fitting(widths, may_shrink, room)
    if fitting is None:
        return TableLines(None, (line for row in rows for line in _folded(names, row, numeric, room)))
    cut_names = [cut(name, width, mark) for name, width in zip(names, fitting, strict=True)]
    cut_rows = (line for row in rows for line in _wrapped_at_the_end(row, fitting, mark))
    return _side_by_side(cut_names, cut_rows, fitting, numeric)


def _columns_of(names: Sequence[str], rows: Iterable[Row]) -> tuple[list[bool], list[int], list[bool]]:
    """Return of each column whether it has numbers only, its width, and whether its texts may be cut."""
    widths = list(map(width_of, names))
    are_numbers, are_plain = [True] * len(names), [True] * len(names)
    is_empty = True
    for row in rows:
        is_empty = False
        for at, text in enumerate(row):
            widths[at] = max(widths[at], width_of(text))
            are_numbers[at] = are_numbers[at] and is_number(text)
            are_plain[at] = are_plain[at] and not is_styled(text)
    numeric = [not is_empty and each for each in are_numbers]
    return numeric, widths, [plain and not each for plain, each in zip(are_plain, numeric, strict=True)]


def _fitting(widths: Sequence[int], may_shrink: Sequence[bool], room: int) -> list[int] | None:
    """Return column widths that fit side by side, with the widest texts narrowed; None if impossible."""
    last = len(widths) - 1
    found = [
        min(width, _MAX_TEXT) if shrinks and at != last else width
        for at, (width, shrinks) in enumerate(zip(widths, may_shrink, strict=True))
    ]
    while sum(found) + len(GAP) * last > room:
        shrinkable = [at for at, shrinks in enumerate(may_shrink) if shrinks and found[at] > _MIN_TEXT]
        if not shrinkable:
            return None
        found[max(shrinkable, key=found.__getitem__)] -= 1
    return found


def _side_by_side(
    names: Sequence[str], rows: Iterable[Row], widths: Sequence[int], numeric: Sequence[bool]
) -> TableLines:
    def line(row: Row) -> str:
        return GAP.join(map(_padded, row, widths, numeric)).rstrip()

    return TableLines(line(names), map(line, rows))


def _wrapped_at_the_end(row: Row, widths: Sequence[int], mark: str) -> Iterator[Row]:
    """Yield the row with its texts cut, except the last one, which continues below."""
    *before, last = row
    first, *others = wrapped(last, widths[-1])
    yield [*(cut(item, width, mark) for item, width in zip(before, widths, strict=False)), first]
    for other in others:
        yield [*("" for _ in before), other]


def _folded(names: Sequence[str], row: Row, numeric: Sequence[bool], room: int) -> Iterator[str]:
    """Yield the first cell on a line of its own, and the named other cells below it."""
    at = next((at for at, name in enumerate(names) if name), 0)
    title = f"{names[at]} {row[at]}" if numeric[at] else row[at]
    yield from wrapped(GAP.join([*row[:at], title]), room)
    rest = [(name, value) for name, value in zip(names, row, strict=True)][at + 1 :]
    cells = [value if len(rest) == 1 else f"{name}: {value}" for name, value in rest if value]
    line = ""
    for cell in cells:
        if line and width_of(_INDENT + line + GAP + cell) > room:
            yield from _indented(line, room)
            line = cell
        else:
            line = f"{line}{GAP}{cell}" if line else cell
    if line:
        yield from _indented(line, room)


def _indented(text: str, room: int) -> Iterator[str]:
    return (_INDENT + line for line in wrapped(text, room - len(_INDENT)))


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width` columns, split at spaces if possible."""
    if width_of(text) <= width or is_styled(text):
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
    """Return the text cut to `width` columns, ending with a mark if it was cut."""
    if width_of(text) <= width or is_styled(text):
        return text
    return text[: _fits(text, width - width_of(mark))] + mark


def cut_styled(text: str, width: int, mark: str = "…") -> str:
    """Return styled text cut to `width` columns; its styles stay, and end where they ended."""
    if width_of(text) <= width:
        return text
    room = width - width_of(mark)
    kept = []
    for letter in text:
        if is_styled(letter):
            kept.append(letter)
            continue
        if room >= 0:
            room -= _width_of_letter(letter)
            kept.append(letter if room >= 0 else mark)
    return "".join(kept)


def _fits(text: str, width: int) -> int:
    """Return how many characters fit into `width` columns; at least 1."""
    taken = 0
    for at, letter in enumerate(text):
        taken += _width_of_letter(letter)
        if taken > width:
            return max(1, at)
    return len(text)


def width_of(text: str) -> int:
    """Return the width of the text on a terminal, in columns."""
    text = without_markers(text)
    return len(text) if text.isascii() else sum(map(_width_of_letter, text))


def _width_of_letter(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def is_number(text: str) -> bool:
    """Return whether the text is a number, perhaps with a unit, or empty."""
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
