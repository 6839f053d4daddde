"""Show progress on stderr: only on a terminal, and only if the work takes more than two seconds."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

import click

from smdebug.cli.answers.table_layout import width_of
from smdebug.plain_text import escaped

T = TypeVar("T")

_DELAY = 2.0  # seconds before progress is shown
_INTERVAL = 0.1  # seconds between two updates
_WAITING_INTERVAL = 0.5
_BAR_WIDTH = 24


def progress(label: str, total: int | None = None) -> Callable[[Iterable[T]], Iterator[T]]:
    """Return a function that iterates over its argument and shows the progress."""

    def over(items: Iterable[T]) -> Iterator[T]:
        count = total
        if count is None and isinstance(items, Sized):
            count = len(items)
        bar = Progress(label, count)
        try:
            for item in items:
                yield item
                bar.advance(1)
        finally:
            bar.clear()

    return over


class Progress:
    """A progress line on stderr, which `clear` removes."""

    def __init__(self, label: str, total: int | None):
        self._label = label
        self._total = total
        self._done = 0
        self._started = self._updated = time.monotonic()
        self._shown = False
        self._visible = _can_overwrite()

    def expect(self, total: int | None) -> None:
        """Set the amount of all the work, as soon as it is known."""
        self._total = total

    def advance(self, by: int) -> None:
        self._done += by
        now = time.monotonic()
        if not self._visible or now - self._started < _DELAY or now - self._updated < _INTERVAL:
            return
        self._updated = now
        self._shown = True
        _overwrite(f"{self._label} {self._amount(now)}")

    def _amount(self, now: float) -> str:
        if not self._total:
            return f"{self._done:,}"
        share = min(1.0, self._done / self._total)
        filled = round(_BAR_WIDTH * share)
        left = (now - self._started) * (1 - share) / share if share else 0
        return f"{'█' * filled}{'░' * (_BAR_WIDTH - filled)} {share:4.0%}, {left:.0f} s left"

    def clear(self) -> None:
        if self._shown:
            _erase()
            self._shown = False


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show the elapsed time of work whose progress is unknown."""
    if not _can_overwrite():
        yield
        return
    done = threading.Event()
    started = time.monotonic()

    def update() -> None:
        pause = _DELAY
        while not done.wait(pause):
            pause = _WAITING_INTERVAL
            _overwrite(f"{label}, {time.monotonic() - started:.0f} s")

    thread = threading.Thread(target=update, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if time.monotonic() - started >= _DELAY:
            _erase()


def _can_overwrite() -> bool:
    """Return whether stderr is a terminal on which a line can be overwritten; it may also be closed."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _overwrite(text: str) -> None:
    """Write the progress line; on a narrow terminal, only its end."""
    room = max(2, shutil.get_terminal_size().columns - 1)
    while width_of(text) > room:
        text = f"…{text[2:]}"
    click.echo(f"\r\033[K{escaped(text)}", nl=False, err=True, color=True)


def _erase() -> None:
    click.echo("\r\033[K", nl=False, err=True, color=True)
