"""Targets that the weights compute, with a gradient, that learn them, as in reinforcement learning."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence
from typing import Any

LEAST_STEPS = 3
"""Such an error may be one of several now and then."""
TITLE = "The target of the loss learns, too"
ADVICE = (
    "Compute the target without a gradient: with torch.no_grad(), or next_values.detach(). The error then "
    "moves the values alone, and not what they are to become."
)


def found(steps: MutableSequence[int], facts: Mapping[str, Any], step: int) -> Mapping[str, Any] | None:
    """Keep at which saved steps in a row there was such a target; after enough of them, return a finding."""
    known: Mapping[str, Any] | None = facts.get("own_target")
    if known is None:
        steps.clear()
        return None
    if len(steps) < LEAST_STEPS:
        steps.append(step)
    if len(steps) < LEAST_STEPS:
        return None
    parameter, discount = known["parameter"], known["discount"]
    return {
        "message": (
            f"The target is a reward and {discount:.3g} times the next value, which {parameter} and the "
            "weights beside it compute with a gradient: the error moves the target to the prediction, too"
        ),
        "since": steps[0],
        "tensor": parameter,
        "statistic": "discount",
        "value": discount,
        "title": TITLE,
        "why": (f"2 sides of the error have a gradient, at {LEAST_STEPS} saved steps in a row",),
        "advice": (ADVICE,),
    }
