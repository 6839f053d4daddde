"""Predictions of a classifier between its training steps, of the same rows again and again.

So a validation looks that counts right answers and computes no loss. Others ask a model in training mode on
purpose: a generator for samples, a policy for actions, a teacher for targets. They ask for other rows, or
their loss is of another kind.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.tensors import Modules

LEAST_TIMES, LEAST_APART = 3, 5
LEAST_ROWS = 8
_NORMALISING = "BatchNorm"


def empty() -> dict[str, Any]:
    """What is kept of a training of which nothing was seen yet."""
    return {"root": "", "trained": [], "row": None, "times": 0, "since": 0, "calls": [], "step": 0}


def add(kept: MutableMapping[str, Any], seen: ObservedStep, call: int | None) -> None:
    """Add a step of the training, or what is predicted between two. `call` is its number in its mode."""
    facts = seen.facts
    shapes = facts.get("shapes") or []
    if seen.mode in TRAINING:
        if facts.get("optimizer_steps") and _classifies(facts) and shapes:
            kept.update(root=Modules.of(seen).root, row=list(shapes[0][1:]))
            kept["trained"] = [*kept["trained"], facts.get("row_digests")][-LEAST_TIMES:]
        return
    if seen.mode is not ModeKeys.EVAL or not facts:
        return
    rows = seen.series("loss")
    digests = facts.get("row_digests")
    has_loss = bool(len(rows) and (rows[:, 1] == ModeKeys.EVAL.value).any())
    is_same = digests is not None and digests == kept.get("digests")
    is_apart = is_same and seen.step - kept["step"] >= LEAST_APART
    if has_loss or not is_apart:
        kept.update(times=0, calls=[])
    kept["since"] = kept["since"] if is_apart and kept["times"] else seen.step
    kept["times"] += 1
    kept["calls"] = [*kept["calls"], call][-LEAST_TIMES:]
    kept.update(digests=digests, step=seen.step)


def are_found(
    kept: Mapping[str, Any], seen: ObservedStep, modules: Modules, dependent: Sequence[str]
) -> bool:
    """Whether a step predicts what a validation does that has no loss."""
    shapes = seen.facts.get("shapes") or []
    is_of_the_classifier = bool(
        shapes
        and kept["root"] == modules.root
        and kept["row"] == list(shapes[0][1:])
        and shapes[0][0] >= LEAST_ROWS
        and kept.get("digests") not in kept["trained"]
    )
    if seen.mode is not ModeKeys.EVAL or not is_of_the_classifier or kept["times"] < LEAST_TIMES:
        return False
    # Several passes over the same rows measure how sure a model with dropout is: the second is not saved.
    calls = kept["calls"]
    are_single = None not in calls and calls[-1] - calls[0] == len(calls) - 1
    return are_single or any(_NORMALISING in modules.classes.get(name, "") for name in dependent)


def _classifies(facts: Mapping[str, Any]) -> bool:
    loss = facts.get("loss") or {}
    terms = loss.get("terms") or []
    return (
        len(terms) == 1
        and "value" in loss
        and terms[0].get("criterion") == "cross entropy"
        and terms[0].get("reduction") == "mean"
    )
