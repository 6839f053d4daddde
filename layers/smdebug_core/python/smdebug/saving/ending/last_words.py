"""What a hook logs when its run ends: what was saved and what to do next, or why nothing was saved."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smdebug.amounts import counted, size


@dataclass(frozen=True)
class Saved:
    """What a worker has saved of a training."""

    place: str
    steps: int
    """The steps of the training, saved or not."""
    saved_steps: int = 0
    tensors: int = 0
    bytes: int = 0
    collections: Sequence[str] = ()
    saw_a_loss: bool = True
    missed_the_optimizer: bool = False
    by_default: bool = False
    """Whether the default plan chose what to save."""
    training_steps: int = 0
    """How many of the steps were of training; the others were evaluations."""


def closing_line(saved: Saved) -> str:
    """Return the line for a run of which something was saved."""
    place = short(saved.place)
    own = f" ({saved.training_steps:,} of training)" if 0 < saved.training_steps < saved.steps else ""
    return (
        f"Saved {saved.saved_steps:,} of {counted(saved.steps, 'step')}{own}, "
        f"{counted(saved.tensors, 'tensor')}, {size(saved.bytes)} to {place}. "
        f"Next: smdebug evaluate {shlex.quote(place)}"
    )


def problems(saved: Saved, *, if_no_step: str, if_no_loss: str, if_no_optimizer: str) -> list[str]:
    """Return what is missing from the run, each with what to add."""
    if not saved.steps:
        return [f"Nothing was saved to {short(saved.place)}, because no step began. {if_no_step}"]
    if not saved.saved_steps:
        if saved.by_default:
            steps = counted(saved.steps, "step")
            return [
                f"Nothing was saved to {short(saved.place)}: in {steps} no number and no tensor was "
                f"recorded. {if_no_loss}"
            ]
        named = ", ".join(sorted(saved.collections))
        return [
            f"Nothing was saved to {short(saved.place)}: in {counted(saved.steps, 'step')} "
            f"no tensor of the collections {named} was recorded at a step that is saved. "
            "Include other collections, or save more often"
        ]
    steps = "the only step" if saved.steps == 1 else f"{saved.steps:,} steps"
    missing = []
    if not saved.saw_a_loss:
        missing.append(f"No loss was seen in {steps}. {if_no_loss}")
    if saved.missed_the_optimizer:
        missing.append(
            f"Gradients were seen in {steps}, and no optimizer, so "
            f"updates and learning rates are missing. {if_no_optimizer}"
        )
    return missing


def short(place: str) -> str:
    """Return the place, relative to the working directory if it is inside."""
    if not Path(place).is_absolute():
        return place
    relative = os.path.relpath(place)
    return place if relative.startswith(os.pardir) else relative
