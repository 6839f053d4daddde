"""Files that a command line names to be read."""

from __future__ import annotations

from pathlib import Path

import click


def read_named(file: str) -> bytes:
    """What the file holds; that it is not there is a mistake in the command line."""
    place = Path(file).expanduser()
    if place.is_dir():
        raise click.UsageError(f"{file} is a folder, and has to be a file")
    if not place.exists():
        raise click.UsageError(f"There is no file {file}")
    return place.read_bytes()
