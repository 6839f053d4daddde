"""The files below a folder, without following links that leave it, and in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_HIDDEN = (".", "__")


def folders_below(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folder and those in it, with the names of their files, in the order of their names."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
        yield Path(place), sorted(files)


def name_below(place: Path, top: Path) -> str:
    """Return a name for a run at `place` in the folder `top`: `version_0`, or `a-b` for a nested one."""
    parts = place.relative_to(top).parts if place != top else ()
    return "-".join(parts) or top.resolve().name
