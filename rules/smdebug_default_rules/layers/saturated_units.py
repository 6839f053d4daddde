"""Layers whose tanh or sigmoid gives its extreme values for nearly every input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules

LIMIT = 0.85
LEAST_STEPS = 3
LEAST_VALUES = 32
_EXTREMES = {
    "Tanh": (-1.0, 1.0),
    "Sigmoid": (0.0, 1.0),
    "Hardtanh": (-1.0, 1.0),
    "Hardsigmoid": (0.0, 1.0),
}
_FUNCTIONS = {
    "tanh": (-1.0, 1.0),
    "sigmoid": (0.0, 1.0),
    "hard_tanh": (-1.0, 1.0),
    "hard_sigmoid": (0.0, 1.0),
}
"""The same as the activation of another layer, by their names in Keras."""
_CELLS = frozenset({"LSTM", "GRU"})
"""Layers whose activation is not what their output ends with."""
LARGE_INPUTS = 5.0
"""Above this root mean square, inputs alone can push an activation to its bounds."""
_CLOSE = 0.005
"""How close to its bound a value is saturated, as a share of the range: the slope is below 0.02 there."""


EARLY = 3
"""Layers that are at their bounds at one of this many saved steps have begun so."""
LEAST_LOSSES = 300
FALLEN = 2.5
"""By this many standard errors a loss has fallen: units that reached their bounds by then are of use."""


class SaturatedUnits(DefaultRule):
    """Fires when 85 % of the outputs of a hidden tanh or sigmoid are at its bounds, three times in a row.

    Those that go to their bounds later are reported if the loss has not fallen in 300 steps.
    """

    cause = "saturated activation"
    follows_scalars = True
    needs = "no outputs of layers were saved"
    advice: ClassVar[Advice] = {
        "saturated activation": (
            "Scale the inputs, and start with smaller weights (Xavier initialisation).",
            "Add a normalisation before the activation, or use ReLU or GELU.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps: dict[str, list[int]] = {}
        self.losses = loss_history.empty()
        self.checked = 0

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss_history.extend(self.losses, *loss_history.finite_losses(seen))
        outputs, modules = seen.statistics("outputs"), Modules.of(seen)
        if outputs is None:
            self.looked = False
            return
        watched = seen.shared_by_layout.get("bounded")
        if watched is None:
            watched = seen.shared_by_layout["bounded"] = _bounded(modules, outputs.names)
        if not watched:
            self.lacks("no hidden layer is bounded, as tanh and sigmoid are")
            return
        self.checked += 1
        still: dict[str, list[int]] = {}
        samples = seen.samples("outputs")
        for name, (low, high) in watched.items():
            sample = samples.get(name)
            if sample is None:
                continue
            sample = sample[np.isfinite(sample)]
            if len(sample) < LEAST_VALUES:
                continue
            close = _CLOSE * (high - low)
            share = float(np.mean((sample <= low + close) | (sample >= high - close)))
            if share <= LIMIT:
                continue
            since, steps = self.steps.get(name, [seen.step, 0])
            still[name] = [since, steps + 1]
            began_so = self.checked - steps <= EARLY
            if steps + 1 >= LEAST_STEPS and (began_so or self._is_stuck()):
                layer = modules.layer_of_output(name)
                yield self.finding(
                    f"{share:.0%} of the outputs of {modules.described(layer)} are at {low:g} or {high:g}",
                    since=since,
                    tensor=name,
                    statistic="share of extreme values",
                    value=share,
                    limit=LIMIT,
                    **self._case(seen, share),
                )
        self.steps = still

    def _is_stuck(self) -> bool:
        """Whether the loss is no lower than at first, beyond chance; False if it is too early to say."""
        first, last = self.losses["first"], self.losses["last"]
        if self.losses["count"] < LEAST_LOSSES:
            return not first
        start, now = loss_history.level(first), loss_history.level(last)
        return now >= min(first) and start - now <= FALLEN * loss_history.error_of_fall(self.losses)

    def _case(self, seen: ObservedStep, share: float) -> dict[str, Any]:
        """The numbers that convince, and what to try: inputs of large values first."""
        inputs = seen.statistics("inputs")
        scale, weights = "", "Start with smaller weights (Xavier initialisation), or lower the learning rate."
        other = self.advice["saturated activation"][1]
        if inputs is not None and float(inputs.column("rms")[0]) > LARGE_INPUTS:
            scale = f"{inputs.names[0]} has a root mean square of {float(inputs.column('rms')[0]):.3g}"
        return {
            "why": (f"Only {1 - share:.0%} of the values are where the slope is not nearly 0",),
            "advice": (
                *((f"Scale the inputs to about 1: {scale}.",) if scale else ()),
                weights,
                other,
            ),
        }


def _bounded(modules: Modules, names: list[str]) -> dict[str, tuple[float, float]]:
    """The hidden layers with bounds: the last layer may give extreme values on purpose."""
    layers = [(name, modules.layer_of_output(name)) for name in names]
    hidden = [(name, layer) for name, layer in layers if layer != modules.root and name != modules.output]
    bounds = {name: _bounds(modules, layer) for name, layer in hidden[:-1]}
    return {name: known for name, known in bounds.items() if known is not None}


def _bounds(modules: Modules, layer: str) -> tuple[float, float] | None:
    kind = modules.classes.get(layer, "")
    if kind in _EXTREMES or kind in _CELLS:
        return _EXTREMES.get(kind)
    return _FUNCTIONS.get(modules.activations.get(layer, ""))
