"""Files that a command line names to be read."""

from __future__ import annotations

from pathlib import Path

import click


def read_named(file: str) -> bytes:
    """What the file holds; that it is not there, or not readable, is a mistake in the command line."""
    place = Path(file).expanduser()
    if not file or not place.exists():
        raise click.UsageError(f"There is no file {file or repr(file)}")
    if place.is_dir():
        raise click.UsageError(f"{file} is a folder, and has to be a file")
    try:
        return place.read_bytes()
    except PermissionError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
