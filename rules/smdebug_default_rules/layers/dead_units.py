"""Layers that give zeros for nearly every input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.scales import poorly_scaled_inputs
from smdebug_default_rules.tensors import Modules

LIMIT = 0.95
LEAST_STEPS = 3
LEAST_VALUES = 16
_RECTIFIERS = ("ReLU", "ReLU6", "Threshold", "Hardshrink", "Softshrink")
_FUNCTIONS = ("relu", "relu6", "hard_shrink", "soft_shrink")
"""The same as the activation of another layer, by their names in Keras."""


class DeadUnits(DefaultRule):
    """Fires when 95 % of the outputs of a rectifier are zero, at three saved steps in a row."""

    cause = "dead activation"
    needs = "no outputs of layers were saved"
    advice: ClassVar[Advice] = {
        "dead activation": (
            "Lower the learning rate, and start the biases at zero or slightly above.",
            "Use LeakyReLU or GELU; take a rectifier off the last layer, unless all targets are positive.",
        )
    }
    _LAST: ClassVar[str] = (
        "Take the rectifier off the last layer, unless all targets are positive: it cannot "
        "return anything else."
    )

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps: dict[str, list[int]] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        outputs, modules = seen.statistics("outputs"), Modules.of(seen)
        if outputs is None:
            self.looked = False
            return
        rectified = seen.shared_by_layout.get("rectified")
        if rectified is None:
            rectified = np.array([_is_rectified(modules, name) for name in outputs.names], bool)
            seen.shared_by_layout["rectified"] = rectified
        if not rectified.any():
            self.lacks("no output of a layer with ReLU or another rectifier was saved")
            return
        count, zeros = outputs.column("count"), outputs.column("zeros")
        still: dict[str, list[int]] = {}
        for place in where(rectified & (zeros > 0.9 * LIMIT * count) & (count >= LEAST_VALUES)):
            share = zeros[place] / count[place]
            if not share > LIMIT:
                continue
            name = outputs.names[place]
            layer = modules.layer_of_output(name)
            since, steps = self.steps.get(name, [seen.step, 0])
            still[name] = [since, steps + 1]
            if steps + 1 >= LEAST_STEPS:
                yield self.finding(
                    f"{share:.0%} of the outputs of {modules.described(layer)} are zero",
                    since=since,
                    tensor=name,
                    statistic="share of zeros",
                    value=float(share),
                    limit=LIMIT,
                    **self._case(seen, place),
                )
        self.steps = still

    def _case(self, seen: ObservedStep, place: int) -> dict[str, Any]:
        """The numbers that convince, and what to try."""
        outputs = seen.statistics("outputs")
        assert outputs is not None
        values, zeros = int(outputs.column("count")[place]), int(outputs.column("zeros")[place])
        scale = poorly_scaled_inputs(seen)
        lower, other = self.advice["dead activation"]
        is_last = outputs.names[place] == Modules.of(seen).output or place >= len(outputs.names) - 2
        return {
            "why": (f"{zeros} of {values} values are 0", *((scale.why,) if scale else ())),
            "advice": (
                *((scale.advice,) if scale else ()),
                *((self._LAST, lower) if is_last else (lower, other)),
            ),
        }


def _is_rectified(modules: Modules, output: str) -> bool:
    """Whether this is the output of a layer that ends with a rectifier."""
    layer = modules.layer_of_output(output)
    return modules.classes.get(layer) in _RECTIFIERS or modules.activations.get(layer) in _FUNCTIONS
