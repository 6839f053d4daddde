"""What commands print: tables and sentences for people, JSON for scripts, progress for those who wait."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from smdebug.cli.columns import laid_out, width_of
from smdebug.service.tables import cell, plain

if TYPE_CHECKING:
    from smdebug.trials import Trial

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_PATIENCE = 2.0  # seconds before progress is shown
_PAUSE = 0.1  # and between two times that it is
_NARROWEST = 20  # columns that a terminal is taken to have


def json_option(function: F) -> F:
    """`--json` and `--debug`, which every command has."""
    function = click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        help="Show what the library logs, and the trace of an error.",
    )(function)
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(function)


def tell_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(_document(value, indent=2))


def tell_json_line(value: Any) -> None:
    """One line of JSON: for commands that go on telling."""
    click.echo(_document(value))


def _document(value: Any, indent: int | None = None) -> str:
    """Its letters as they are, or escaped where the encoding of stdout has no such letters."""
    value = _plain(value)
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    if _can_be_encoded(text):
        return text
    return json.dumps(value, ensure_ascii=True, indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    """As JSON can hold it: numbers that are none, as text."""
    value = plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return value


def say(text: str = "") -> None:
    """A line for people."""
    click.echo(_printable(text))


def heading(text: str) -> None:
    click.echo()
    click.secho(_printable(text), bold=True)


def note(text: str) -> None:
    """Something beside the answer, on stderr."""
    click.secho(_printable(text), dim=True, err=True)


def good(text: str) -> str:
    return click.style(text, fg="green")


def bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)


def faint(text: str) -> str:
    return click.style(text, dim=True)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, most: int | None = None
) -> None:
    """Rows under their headings; numbers to the right. Above `most` rows the rest is counted.

    It keeps within the columns of a terminal. Elsewhere nothing is cut.
    """
    shown = [[shown_as(one) for one in row] for row in rows]
    left_out = 0 if most is None else max(0, len(shown) - most)
    shown = shown[: len(shown) - left_out]
    head, lines = laid_out(columns, shown, _room(), mark=_printable("…"))
    if head is not None:
        click.echo(faint(_printable(head)))
    for line in lines:
        click.echo(_printable(line))
    if left_out:
        say(faint(f"… and {left_out} more"))


def _room() -> int | None:
    """How many columns the terminal has that stdout is; None if it is none, or closed."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def shown_as(value: Any) -> str:
    """A value as a table has it: on one line, and without what a terminal would obey."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Styled):
        return value
    if isinstance(value, tuple | list) and all(isinstance(one, int) for one in value):
        return "×".join(map(str, value)) if value else "scalar"
    return cell(value)


class Styled(str):
    """Text of ours that already carries its colour."""


def number(value: float | None) -> str:
    if value is None:
        return ""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return f"{value:.4g}"


def size(count: int) -> str:
    """A number of bytes, for people."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(value: datetime | None) -> str:
    return "" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def progress(label: str, total: int | None = None) -> Callable[[Iterable[T]], Iterator[T]]:
    """Tells on stderr how far an iteration has come: after two seconds, and to a terminal alone."""

    def over(things: Iterable[T]) -> Iterator[T]:
        count = total
        if count is None and isinstance(things, Sized):
            count = len(things)
        bar = Progress(label, count)
        try:
            for thing in things:
                yield thing
                bar.advance(1)
        finally:
            bar.clear()

    return over


class Progress:
    """A line on stderr that is written over and over, and taken away at the end."""

    def __init__(self, label: str, total: int | None):
        self._label = label
        self._total = total
        self._done = 0
        self._begun = self._told = time.monotonic()
        self._shown = False
        self._visible = _is_watched()

    def advance(self, by: int) -> None:
        self._done += by
        now = time.monotonic()
        if not self._visible or now - self._begun < _PATIENCE or now - self._told < _PAUSE:
            return
        self._told = now
        self._shown = True
        _write_over(f"{self._label} {self._amount(now)}")

    def _amount(self, now: float) -> str:
        if not self._total:
            return f"{self._done:,}"
        share = min(1.0, self._done / self._total)
        filled = round(24 * share)
        left = (now - self._begun) * (1 - share) / share if share else 0
        return f"{'█' * filled}{'░' * (24 - filled)} {share:4.0%}, {left:.0f} s left"

    def clear(self) -> None:
        if self._shown:
            click.echo("\r\033[K", nl=False, err=True, color=True)
            self._shown = False


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Tells on stderr for how long something takes that cannot say how far it has come."""
    if not _is_watched():
        yield
        return
    done = threading.Event()
    begun = time.monotonic()

    def tell() -> None:
        pause = _PATIENCE
        while not done.wait(pause):
            pause = 0.5
            seconds = time.monotonic() - begun
            _write_over(f"{label}, {seconds:.0f} s")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        if time.monotonic() - begun >= _PATIENCE:
            click.echo("\r\033[K", nl=False, err=True, color=True)


def opened(path: str) -> Trial:
    """The run at that path; a long one takes a while."""
    from smdebug.runs.opening import open_run

    with waiting(f"opening {path}"):
        return open_run(path)


def _printable(text: str) -> str:
    """As the terminal's encoding can show it."""
    if _can_be_encoded(text):
        return text
    encoding = _encoding()
    return text.translate(_PLAINER).encode(encoding, "replace").decode(encoding)


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:
        return False
    return True


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _is_watched() -> bool:
    """Is stderr a terminal on which a line can be written over? It may also be closed."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _write_over(text: str) -> None:
    """The line that is written over and over; its end is kept where the terminal is too narrow for it."""
    room = max(2, shutil.get_terminal_size().columns - 1)
    while width_of(text) > room:
        text = f"…{text[2:]}"
    click.echo(f"\r\033[K{text}", nl=False, err=True, color=True)


_PLAINER = str.maketrans(
    {"…": "...", "×": "x", "█": "#", "░": ".", "–": "-", "≥": ">=", "✓": "+", "✗": "x"}
) | {ord(block): ascii_ for block, ascii_ in zip("▁▂▃▄▅▆▇█", "_..--==#", strict=True)}
