"""What a command says of a run of which it could read a part alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smdebug.cli import outcomes
from smdebug.cli.telling import note, plural

if TYPE_CHECKING:
    from smdebug.runs.left_out import LeftOut
    from smdebug.trials import Trial


def noted_gaps(trial: Trial, **asked_for: Any) -> list[LeftOut]:
    """The files that the answer has to leave out; told on stderr, too.

    `asked_for` are the steps, the worker and the tensors that the command looks at, if not at all.
    """
    from smdebug.runs.left_out import left_out_of

    gaps = [one for one in left_out_of(trial) if one.matters_to(**asked_for)]
    for sentence in told_of(gaps, trial.path):
        note(sentence)
    return gaps


def told_of(gaps: Sequence[LeftOut], path: str) -> list[str]:
    """A sentence for each kind of gap, with what to do."""
    unreadable = [one for one in gaps if not one.is_missing]
    missing = [one for one in gaps if one.is_missing]
    kinds = (
        (unreadable, "index file", "cannot be read"),
        (missing, "event file", "is missing" if len(missing) == 1 else "are missing"),
    )
    return [
        f"{plural(len(some), what)} {problem}, and what belongs to it is left out: {_named(some)}; "
        f"`smdebug verify {path}` tells more"
        for some, what, problem in kinds
        if some
    ]


def _named(gaps: Sequence[LeftOut]) -> str:
    first = gaps[0]
    of = "" if first.step is None else f" (step {first.step}, {first.worker})"
    more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
    return f"{first.file}{of}{more}"


def code_over(gaps: Sequence[LeftOut], code: int) -> int:
    """What was found is found; but over a part of a run nobody can say that all is well."""
    return outcomes.CANNOT_LOOK if gaps and code == outcomes.WELL else code
