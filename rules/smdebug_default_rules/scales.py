"""What the scale of inputs and targets, and a mask, suggest where a training fails for another reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.loss.constant_prediction import SQUARED
from smdebug_default_rules.tensors import Modules

TINY = 0.01
"""Inputs below this root mean square were scaled down too far, such as divided by 255 twice."""
EVEN = 0.03
"""Inputs whose spread is below this share of their mean look alike to the first layer."""
FAR = 30.0
"""Targets this many times as large as the model's output are out of its reach."""
VARIED, OF_ZEROS, EVEN_SQUARES = 10.0, 4.0, 8.0
"""How many times another one a mean square of targets is; and that one, a loss; and a single square."""
_ATTENTION = ("Attention", "Transformer", "Encoder", "Decoder")


class Hint(NamedTuple):
    """Something seen beside a problem that may be its cause."""

    why: str
    advice: str


def poorly_scaled_inputs(seen: ObservedStep) -> Hint | None:
    """Return what to say if the model's only input of floating-point rows is nearly 0, or hardly varies."""
    inputs = seen.statistics("inputs")
    if inputs is None or len(inputs.names) != 1 or "float" not in inputs.tensors[0].dtype:
        return None
    name, scale = inputs.names[0], float(inputs.column("rms")[0])
    if 0 < scale < TINY:
        return Hint(
            f"{name} has a root mean square of {scale:.2g}, where about 1 is usual",
            "Look at how the inputs are scaled: they are nearly zero, as if they were divided twice, such as "
            "by 255 in the data set and again in the loop.",
        )
    mean, spread = float(inputs.column("mean")[0]), float(inputs.column("std")[0])
    if 0 < spread < EVEN * abs(mean):
        return Hint(
            f"{name} has a mean of {mean:.3g} and a spread of {spread:.2g} only",
            "Look at how the inputs are scaled: their values are nearly all the same, as if a mean and a "
            "spread were applied that belong to a larger range, such as those of pixels from 0 to 1 to "
            "pixels that were divided by 255 twice.",
        )
    return None


def large_targets(seen: ObservedStep) -> Hint | None:
    """Return what to say if the targets of a regression are far larger than what the model returns."""
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    outputs, name = seen.statistics("outputs"), Modules.of(seen).output
    if len(terms) != 1 or outputs is None or name not in outputs or not terms[0].get("means"):
        return None
    means, variances = terms[0]["means"], terms[0]["variances"]
    sizes = [(mean * mean + variance) ** 0.5 for mean, variance in zip(means, variances, strict=True)]
    wanted = max(range(len(sizes)), key=sizes.__getitem__)
    given = float(outputs.row(name)["rms"])
    if not sizes[wanted] > FAR * max(given, 1.0):
        return None
    return Hint(
        f"Targets have a mean of {means[wanted]:.4g} and a spread of {variances[wanted] ** 0.5:.3g}, and the "
        f"root mean square of the outputs is {given:.3g}",
        "Standardise the targets, (y - mean) / std of the training data, and undo it for predictions: an "
        "output that starts near 0 needs very long to reach them.",
    )


def mean_square(term: Mapping[str, Any]) -> float:
    """Return the mean square of the targets of a loss whose `means` and `variances` are known."""
    return float(np.mean(np.square(term["means"])) + np.mean(term["variances"]))


def squared_targets(seen: ObservedStep) -> float | None:
    """Return the mean square of the targets of a squared error, which that of zeros is.

    None of another loss, and of targets of which a few are out of range.
    """
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    if len(terms) != 1 or terms[0].get("criterion") != SQUARED or not terms[0].get("means"):
        return None
    square = mean_square(terms[0])
    largest = max(abs(terms[0].get(end) or 0.0) for end in ("lowest", "highest"))
    return square if largest**2 < EVEN_SQUARES * square else None


def explain(squares: Sequence[float], loss: float, now: float = 0.0) -> bool:
    """Whether targets with these mean squares, and `now` with that one, explain a loss.

    They do if they differ in scale from step to step, as those of many tasks, and the loss lies within them.
    """
    are_varied = len(squares) > 0 and max(squares) > VARIED * min(squares)
    return are_varied and abs(loss) < OF_ZEROS * max(*squares, now)


def mask(seen: ObservedStep) -> Hint | None:
    """Return what to say if a model with attention is given a mask of its tokens."""
    inputs = seen.statistics("inputs")
    if inputs is None or len(inputs.names) < 2:
        return None
    if not any(part in kind for kind in Modules.of(seen).classes.values() for part in _ATTENTION):
        return None
    tokens = inputs.tensors[0]
    for place, other in enumerate(inputs.tensors[1:], 1):
        low, high = float(inputs.column("min")[place]), float(inputs.column("max")[place])
        if other.shape == tokens.shape and (low, high) == (0.0, 1.0):
            share = float(inputs.column("mean")[place])
            return Hint(
                f"{share:.0%} of the values of the mask {other.name} are 1",
                "Check that the mask is not inverted: True means ignore in PyTorch's key_padding_mask, and 1 "
                "means attend in the attention_mask of transformers.",
            )
    return None
