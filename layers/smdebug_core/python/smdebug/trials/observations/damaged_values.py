"""Damaged values that were left out, counted with the damaged files of their run."""

from __future__ import annotations

from typing import Any

from smdebug.exceptions import DamagedFile, ObjectMissing

DAMAGED = (DamagedFile, ObjectMissing)
"""What reading a value raises if its file is damaged or gone."""


def note_damage(trial: Any, error: DamagedFile | ObjectMissing) -> None:
    """List the file with the trial's damaged files: its values are left out, and counted there.

    Missing files are counted when the run's files are listed.
    """
    damaged = getattr(trial, "damaged_files", None)
    if isinstance(error, DamagedFile) and isinstance(damaged, dict):
        damaged.setdefault(error.file, error)
