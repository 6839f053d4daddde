"""Find the runs below a local folder, reading each folder once."""

# Joining text is faster than making a `Path` of each folder.
# ruff: noqa: PTH118

from __future__ import annotations

import os
from collections.abc import Iterator

from smdebug.files.names import COLLECTIONS_FOLDER
from smdebug.runs.watched_places import DEEPEST


def runs_below(folder: str, prefix: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the paths of runs below a folder, relative to it, in order; folders behind links are left out."""
    try:
        with os.scandir(os.path.join(folder, prefix)) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:  # removed meanwhile, or not readable: the others are listed
        return
    for name in names:
        path = f"{prefix}{name}"
        if _is_run(os.path.join(folder, path)):
            yield path
        elif depth < DEEPEST:
            yield from runs_below(folder, f"{path}/", depth + 1)


def _is_run(folder: str) -> bool:
    try:
        with os.scandir(os.path.join(folder, COLLECTIONS_FOLDER)) as entries:
            return any(not entry.name.endswith(".tmp") for entry in entries)
    except OSError:
        return False
