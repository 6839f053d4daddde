"""Print what commands answer: sentences and tables for people, JSON for scripts."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from smdebug.amounts import number
from smdebug.cli.answers.colours import faint, strong, with_colours
from smdebug.cli.answers.table_layout import GAP, lay_out, width_of
from smdebug.plain_text import escaped_in_json
from smdebug.service.tables import cell, plain

F = TypeVar("F", bound=Callable[..., Any])

_MIN_COLUMNS = 20  # assumed of every terminal
_WIDEST = 110  # of a line of prose
_MIN_CURVE, _MAX_CURVE = 8, 40  # columns


def output_options(function: F) -> F:
    """Add `--json`, `--json-schema` and `--debug`, which every command has."""
    function = click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        help="Show the library's log, and the traceback of an error.",
    )(function)
    function = click.option(
        "--json-schema",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_print_schema,
        help="Print the JSON schema of what --json prints, and end.",
    )(function)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def _print_schema(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from smdebug.cli.json_answers.schemas import schema_of

        print_json(schema_of(str(context.info_name)))
        context.exit()


def print_json(value: Any) -> None:
    """Print a JSON document on stdout."""
    click.echo(json_text(value, indent=2))


def print_json_line(value: Any) -> None:
    """Print one line of JSON, for commands that print several."""
    click.echo(json_text(value))


def print_parts(parts: Iterable[str]) -> None:
    """Print a document that is too large to be in memory."""
    for part in parts:
        click.echo(part, nl=False)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON text, escaped if stdout's encoding lacks some of its characters."""
    value = _json_value(value)
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    if _can_be_encoded(text):
        return escaped_in_json(text)
    return json.dumps(value, ensure_ascii=True, indent=indent, allow_nan=False)


def _json_value(value: Any) -> Any:
    """Return the value as JSON can hold it: numbers that are not finite, as text."""
    value = plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item) for item in value]
    return value


def wrapped(text: str, *, indent: int = 0) -> list[str]:
    """Return the text as indented lines that fit the terminal; elsewhere they do not depend on it."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDEST
    lines = textwrap.wrap(
        text,
        max(_MIN_COLUMNS + indent, min(columns, _WIDEST)),
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [""]


def print_line(text: str = "") -> None:
    """Print a line on stdout."""
    click.echo(_printable(text))


def print_heading(text: str) -> None:
    click.echo()
    print_line(strong(text))


def print_note(text: str) -> None:
    """Print a remark beside the answer, on stderr."""
    click.echo(_printable(faint(text)), err=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, limit: int | None = None) -> None:
    """Print rows under their headings, numbers right-aligned; count the rows beyond `limit`.

    On a terminal the table is fitted to its width. Elsewhere nothing is cut.
    """
    shown = [[cell_text(value) for value in row] for row in rows]
    left_out = 0 if limit is None else max(0, len(shown) - limit)
    _print_laid_out(columns, shown[: len(shown) - left_out])
    if left_out:
        print_line(faint(f"… and {left_out} more"))


class LongTable:
    """A table of more rows than fit into memory: `rows` yields them anew each time it is called."""

    def __init__(self, columns: Sequence[str], rows: Callable[[], Iterable[Sequence[Any]]]):
        self._columns = columns
        self._rows = rows

    def __iter__(self) -> Iterator[Sequence[str]]:
        return ([cell_text(value) for value in row] for row in self._rows())

    def print(self) -> None:
        """Print it as `print_table` does."""
        _print_laid_out(self._columns, self)


def _print_laid_out(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    heads = [cell_text(name) for name in columns]
    head, lines = lay_out(heads, rows, terminal_width(), mark=_printable("…"))
    if head is not None:
        print_line(faint(head))
    for line in lines:
        print_line(line)


def print_curves(columns: Sequence[str], rows: Sequence[tuple[Sequence[Any], Sequence[float]]]) -> None:
    """Print rows of cells that end with a curve, drawn as wide as the terminal has room for."""
    from smdebug.runs.sparkline import sparkline

    shown = [[cell_text(value) for value in cells] for cells, _ in rows]
    heads = [cell_text(name) for name in columns[:-1]]
    widths = [max(map(width_of, column)) for column in zip(heads, *shown, strict=True)]
    room = (terminal_width() or _WIDEST) - sum(width + len(GAP) for width in widths)
    width = max(_MIN_CURVE, min(_MAX_CURVE, room))
    curves = [sparkline(values, width) for _, values in rows]
    print_table(columns, [[*cells, curve] for cells, curve in zip(shown, curves, strict=True)])


def terminal_width() -> int | None:
    """Return the width of the terminal; None if stdout is not a terminal, or closed."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return max(_MIN_COLUMNS, shutil.get_terminal_size().columns)


def cell_text(value: Any) -> str:
    """Return the value as one line of text, without control characters."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Styled):
        return value
    if isinstance(value, tuple | list) and all(isinstance(item, int) for item in value):
        return "×".join(map(str, value)) if value else "scalar"
    return cell(value)


class Styled(str):
    """Text that this program has coloured, and so is printed as it is."""


def moment(value: datetime | None) -> str:
    return "" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _printable(text: str) -> str:
    """Return the text as a terminal may get it, characters that stdout's encoding lacks replaced."""
    text = with_colours(text)
    if _can_be_encoded(text):
        return text
    encoding = _encoding()
    return text.translate(_ASCII_FALLBACKS).encode(encoding, "replace").decode(encoding)


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:
        return False
    return True


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


_ASCII_FALLBACKS = str.maketrans(
    {"…": "...", "×": "x", "█": "#", "░": ".", "–": "-", "≥": ">=", "✓": "+", "✗": "x"}
) | {ord(block): ascii_ for block, ascii_ in zip("▁▂▃▄▅▆▇█", "_..--==#", strict=True)}
