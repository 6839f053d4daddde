"""A loss, or an input, that jumps at one step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.arrays import rounded, where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss_history import finite_losses, is_rounding, new_losses
from smdebug_default_rules.scales import explain, squared_targets

TIMES = 10.0
"""A spike is this many times the largest loss of the last steps and of the first ones."""
LEAST_LOSSES = 20
INPUT_TIMES = 50.0
LEAST_INPUTS = 5


class LossSpike(DefaultRule):
    """Fires when the loss is ten times the largest one before, or the input fifty times its usual scale."""

    cause = "spike"
    follows_scalars = True
    needs = "neither a loss nor a floating-point input was saved"
    advice: ClassVar[Advice] = {
        "spike": (
            "Look at the batch of this step for rows out of range, and clip or drop them.",
            "Clip the norm of the gradients, so that a single batch cannot throw the weights off.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self._begin()

    def _begin(self) -> None:
        """Keep nothing yet."""
        self.losses = loss_history.empty()
        self.scales: list[float] = []
        self.targets: list[float] = []  # by mean square

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        if is_another := self.is_another_training(seen):
            self._begin()
        yield from self._input_spike(seen)
        steps, values = new_losses(seen, is_another=is_another)
        self.looked = len(values) > 0 or bool(self.scales)
        largest, spikes = math.nan, []
        if self._knows_enough() and len(values) and not is_rounding(self.losses["first"]):
            largest = max(map(abs, (*self.losses["first"], *self.losses["last"])))
            if largest > 0:
                spikes = where(np.abs(values) > TIMES * largest)
        targets = squared_targets(seen)
        spikes = [
            place for place in spikes if not explain(self.targets, float(values[place]), targets or 0.0)
        ]
        for place in spikes[:1]:
            step, value = int(steps[place]), float(values[place])
            yield self.finding(
                f"The loss jumped to {value:.4g} at step {step}: "
                f"{abs(value) / largest:.3g} times the largest of the steps before",
                since=step,
                tensor="loss",
                statistic="times the largest loss before",
                value=abs(value) / largest,
                limit=TIMES,
                title="The loss jumps",
                why=(f"{value:.4g} at step {step}, and {largest:.4g} at most before",),
            )
        usual = finite_losses(seen, is_another=is_another)
        if spikes:
            usual = (np.delete(steps, spikes), np.delete(values, spikes))
            usual = (usual[0][np.isfinite(usual[1])], usual[1][np.isfinite(usual[1])])
        loss_history.extend(self.losses, *usual)
        if targets is not None:
            self.targets = [*self.targets, *rounded((targets,), 3)][-16:]

    def _knows_enough(self) -> bool:
        return bool(self.losses["count"] >= LEAST_LOSSES)

    def _input_spike(self, seen: ObservedStep) -> Iterator[Finding]:
        inputs = seen.statistics("inputs")
        if inputs is None or "float" not in inputs.tensors[0].dtype:
            return
        scale = float(inputs.column("rms")[0])
        if not math.isfinite(scale):
            return
        usual = max(self.scales) if len(self.scales) >= LEAST_INPUTS else math.inf
        if scale > INPUT_TIMES * usual > 0:
            yield self.finding(
                f"{inputs.names[0]} has a root mean square of {scale:.4g}, "
                f"{scale / usual:.3g} times the largest before",
                since=seen.step,
                tensor=inputs.names[0],
                statistic="times the largest rms before",
                value=scale / usual,
                limit=INPUT_TIMES,
                title="An input jumps",
                why=(f"{scale:.4g} at step {seen.step}, and {usual:.4g} at most before",),
                advice=(
                    f"Look at the batch of step {seen.step} for rows out of range, a missing scaling or "
                    "another unit, and clip or drop them.",
                ),
            )
        else:
            self.scales = [*self.scales, *rounded((scale,), 3)][-16:]
