"""Warn about files of a run that a command could not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smdebug.amounts import counted
from smdebug.cli import exit_codes
from smdebug.cli.answers.output import print_note

if TYPE_CHECKING:
    from smdebug.runs.left_out import LeftOut
    from smdebug.trials import Trial


def warn_of_unread_files(trial: Trial, **scope: Any) -> list[LeftOut]:
    """Return the files that the answer leaves out, and warn of them on stderr.

    `scope` holds the steps, the worker and the tensors that the command reads; all if not given.
    """
    from smdebug.runs.left_out import left_out_of

    gaps = [gap for gap in left_out_of(trial) if gap.matters_to(**scope)]
    for sentence in unread_file_warnings(gaps, trial.path):
        print_note(sentence)
    return gaps


def unread_file_warnings(gaps: Sequence[LeftOut], path: str) -> list[str]:
    """Return a sentence for each kind of unread file, with what to do."""
    from smdebug.trials.stored.missing_steps import MissingSteps

    lost = MissingSteps(
        tuple(gap.gap for gap in gaps if gap.gap is not None),
        tuple(gap.worker for gap in gaps if gap.is_end and gap.worker is not None),
    )
    gaps = [gap for gap in gaps if gap.gap is None and not gap.is_end]
    damaged = [gap for gap in gaps if gap.is_event_file and not gap.is_missing]
    unreadable = [gap for gap in gaps if not gap.is_event_file]
    missing = [gap for gap in gaps if gap.is_missing]
    kinds = (
        (unreadable, "index file", "cannot be read"),
        (damaged, "event file", "is damaged" if len(damaged) == 1 else "are damaged"),
        (missing, "event file", "is missing" if len(missing) == 1 else "are missing"),
    )
    sentences = [f"{lost}; run `smdebug verify {path}` for details"] if lost else []
    return sentences + [
        f"{counted(len(files), noun)} {problem}, so the tensors in {'it' if len(files) == 1 else 'them'} "
        f"are left out: {_first_of(files)}; run `smdebug verify {path}` for details"
        for files, noun, problem in kinds
        if files
    ]


def _first_of(gaps: Sequence[LeftOut]) -> str:
    first = gaps[0]
    where = "" if first.step is None else f" (step {first.step}, {first.worker})"
    more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
    return f"{first.file}{where}{more}"


def code_despite(gaps: Sequence[LeftOut], code: int) -> int:
    """Return the exit code of an answer with gaps: findings count, but the run cannot have passed."""
    return exit_codes.FAILED if gaps and code == exit_codes.PASSED else code
