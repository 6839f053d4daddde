"""Redraw some lines of a terminal in place; elsewhere, print only what is new."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

import click

from smdebug.cli.answers.colours import with_colours
from smdebug.cli.answers.table_layout import cut_styled


class LiveScreen:
    """Lines at the bottom of the terminal that `show` replaces."""

    def __init__(self) -> None:
        self.is_live = (
            sys.stdout is not None
            and sys.stdout.isatty()
            and os.environ.get("TERM") not in (None, "", "dumb")
        )
        self._height = 0
        self._shown: list[str] = []

    def show(self, lines: Sequence[str]) -> None:
        """Replace the lines; on something that is not a terminal, print nothing."""
        if not self.is_live or list(lines) == self._shown:
            return
        size = shutil.get_terminal_size()
        room = max(1, size.lines - 1)
        hidden = len(lines) - room
        kept = list(lines) if hidden <= 0 else [*lines[: room - 1], f"… {hidden + 1} more lines"]
        text = "\n".join(with_colours(cut_styled(line, size.columns)) for line in kept)
        click.echo(f"{self._erasing()}{text}\n", nl=False, color=None)
        self._height, self._shown = len(kept), list(lines)

    def print_above(self, *lines: str) -> None:
        """Print lines that stay, above the lines that are replaced."""
        erasing = self._erasing() if self.is_live else ""
        text = "\n".join(map(with_colours, lines))
        click.echo(f"{erasing}{text}", color=None)
        self._height, shown, self._shown = 0, self._shown, []
        if self.is_live:
            self.show(shown)

    def _erasing(self) -> str:
        """Return the sequence that moves to the first of the lines and erases them."""
        return f"\r\033[{self._height}A\033[J" if self._height else ""
