"""The result of verifying a run: what was checked, and the problems found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smdebug.trials.stored.attempts import Attempt


@dataclass(frozen=True)
class Problem:
    """A defect in a run."""

    file: str
    problem: str
    tensor: str | None = None
    step: int | None = None
    harmless: bool = False  # readers are not affected

    def __str__(self) -> str:
        what = f", tensor {self.tensor}" if self.tensor else ""
        return f"{self.file}{what}: {self.problem}"

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Verification:
    """The number of files and records that were verified, and the problems found."""

    path: str
    ended: bool
    index_files: int
    event_files: int
    records: int
    checksummed: int  # records with a CRC32C in their index file
    bytes: int
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    attempts: tuple[Attempt, ...] = ()
    """The attempts of the training. All of their files are verified."""

    @property
    def is_sound(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        content = {**vars(self), "is_sound": self.is_sound}
        for name in ("problems", "notes", "attempts"):
            content[name] = [item.to_dict() for item in content[name]]
        return content
