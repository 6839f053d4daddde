"""Inputs that are not scaled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.numbers.rows import sampled_places
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules, Parameters

LIMIT = 100.0
"""Above this root mean square, inputs are not scaled."""
SCALED_INSIDE = 0.05
"""If the first layer gives less than this share of what its weights would make of the input, it is scaled."""
_TAKES_ANY = ("Norm", "Embedding", "Rescaling", "Normalization")


_UNBOUNDED = frozenset({"", "linear", "relu", "leaky_relu", "elu", "gelu", "silu", "swish"})
"""Activations, by their names in Keras, whose output has the scale of what they are given."""


class InputScale(DefaultRule):
    """Fires when the inputs of the first steps are in the hundreds or more, and nothing scales them."""

    cause = "unscaled input"
    needs = "the model has no input of floating-point rows"
    advice: ClassVar[Advice] = {
        "unscaled input": (
            "Standardise the inputs: subtract the mean and divide "
            "by the standard deviation of the training data.",
            "Or let a normalisation be the first layer of the model.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.scales: list[float] = []
        self.since: int | None = None

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        inputs = seen.statistics("inputs")
        if inputs is None or "float" not in inputs.tensors[0].dtype or len(inputs.tensors[0].shape) < 2:
            self.looked = False
            return
        scale = float(inputs.column("rms")[0])
        if not self.scales or len(self.scales) < 3:
            self.scales.append(scale)
        # A single batch unlike those before it is a spike, not a scale.
        if self.scales[0] <= LIMIT or not scale > LIMIT or not _is_taken_as_it_is(seen, scale):
            return
        self.since = seen.step if self.since is None else self.since
        name = inputs.names[0]
        yield self.finding(
            f"{name} has a root mean square of {scale:.4g} (mean {inputs.column('mean')[0]:.4g}, "
            f"largest {np.abs(inputs.values[0, 3:5]).max():.4g}), and nothing scales it before "
            "the first layer",
            since=self.since,
            tensor=name,
            statistic="rms",
            value=scale,
            limit=LIMIT,
            why=_columns(seen, name),
            advice=self.advice["unscaled input"],
        )


def _columns(seen: ObservedStep, name: str) -> tuple[str, ...]:
    """The column with the largest values, where a few stand out, as far as the sample of a table shows."""
    inputs, sample = seen.statistics("inputs"), seen.samples("inputs").get(name)
    usual = (
        (f"Root mean square {float(inputs.column('rms')[0]):.4g}, where about 1 is usual",) if inputs else ()
    )
    shape = inputs.tensors[0].shape if inputs is not None else ()
    if inputs is None or sample is None or len(shape) != 2 or shape[1] < 2 or 3 * shape[1] > len(sample):
        return usual
    columns = sampled_places(int(inputs.column("count")[0]), len(sample)) % shape[1]
    largest = np.array([np.abs(sample[columns == at]).max(initial=0) for at in range(shape[1])])
    first = int(largest.argmax())
    others = float(np.delete(largest, first).max())
    if not largest[first] > LIMIT or others > largest[first] / 10:
        return usual
    return (
        f"Column {first} reaches {largest[first]:.4g}, and the {shape[1] - 1} others {others:.3g} at most",
        *usual,
    )


def _is_taken_as_it_is(seen: ObservedStep, scale: float) -> bool:
    """Whether the first layer gets the input unscaled, as far as its own output shows."""
    modules, outputs, table = Modules.of(seen), seen.statistics("outputs"), Parameters.of(seen)
    if outputs is None or table is None:
        return True
    layer = modules.layer_of_output(outputs.names[0])
    kind = modules.classes.get(layer, "")
    if any(part in kind for part in _TAKES_ANY):
        return False
    if modules.activations.get(layer, "linear") not in _UNBOUNDED:
        # The output shows the activation's bounds, and not the scale of what it was given.
        return True
    weights = [place for place in where(table.is_weight & table.present) if table.layers[place] == layer]
    if not weights:
        return True
    place = weights[0]
    fan_in = table.sizes[place] / max(1, int(table.units[place]))
    expected = scale * float(table.column("rms")[place]) * fan_in**0.5
    return bool(outputs.column("rms")[0] >= SCALED_INSIDE * expected)
