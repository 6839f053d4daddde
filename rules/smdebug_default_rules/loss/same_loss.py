"""A loss that is the same number at every step, whatever the batch and the weights are."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.loss_history import Floats
from smdebug_default_rules.tensors import Parameters

LEAST = 60
"""So many losses in a row are equal to five digits."""
NEARLY_ZERO = 1e-6
"""An error may have nothing left to learn, and a policy's gain over its own mean is zero."""
_NARROW = ("float16", "bfloat16", "float8")
"""Losses of so few digits are often equal."""
_ADVICE = (
    "Print the parts of the loss: two sides may cancel each other, as those of a policy and a reference that "
    "are the same model, or a limit may hold it, as the margin does once all embeddings are equal.",
    "Keep the reference apart from the trained model, as a copy that is made before the training.",
)


def empty() -> dict[str, Any]:
    """What is kept of a loss of which nothing was seen yet."""
    return {"value": None, "since": 0, "count": 0, "moves": False, "batch": None, "differs": False}


def extend(kept: MutableMapping[str, Any], seen: ObservedStep, steps: Floats, values: Floats) -> None:
    """Count how many losses in a row are equal, and whether batches and weights have changed meanwhile."""
    for step, value in zip(steps.tolist(), values.tolist(), strict=True):
        if value != kept["value"]:
            kept.update(empty(), value=value, since=int(step))
        kept["count"] += 1
    table, inputs = Parameters.of(seen), seen.statistics("inputs")
    if table is not None and (table.update("abs_mean") > 0).any():
        kept["moves"] = True
    if inputs is not None and (digest := seen.digests("inputs").get(inputs.names[0])) is not None:
        before, kept["batch"] = kept["batch"], list(digest)
        kept["differs"] = kept["differs"] or before not in (None, kept["batch"])


def found(kept: Mapping[str, Any], seen: ObservedStep) -> dict[str, Any] | None:
    """Return what to say of a loss that does not change; None if it does, or might only seem not to."""
    value, count, parameters = kept["value"], kept["count"], seen.statistics("parameters")
    if count < LEAST or not kept["moves"] or not kept["differs"] or abs(value) <= NEARLY_ZERO:
        return None
    if parameters is None or any(tensor.dtype.endswith(_NARROW) for tensor in parameters.tensors):
        return None
    is_even = math.isclose(value, math.log(2), abs_tol=1e-4)
    of_two = (f"{value:.5g} is ln 2: what a logistic loss gives for a difference of 0",) if is_even else ()
    return {
        "message": f"The loss was {value:.5g} at each of {count} steps in a row, whatever the batch and the "
        "weights were: it does not say how good the model is",
        "since": kept["since"],
        "tensor": "loss",
        "statistic": "losses that are equal",
        "value": count,
        "limit": LEAST,
        "title": "The loss is the same at every step",
        "why": (f"{value:.5g} at each of {count} steps, with other batches and other weights", *of_two),
        "advice": _ADVICE,
    }
