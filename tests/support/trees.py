from __future__ import annotations

from pathlib import Path


def files_below(folder: Path) -> list[str]:
    """The paths of all files below a folder, relative to it and sorted."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
