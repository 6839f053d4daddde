"""Weights that start far too large or small, or all equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules, Parameters

TOO_LARGE, TOO_SMALL = 6.0, 1e-3
"""Gain: the spread of the weights times the square root of the inputs of a unit. Kaiming has 1.4."""
_JUDGED = ("Linear", "Conv", "RNN", "LSTM", "GRU", "Bilinear", "Dense")
_LAST_FIRST_STEP = 0
MOST_NAMED = 3


class InitialWeights(DefaultRule):
    """Fires at the first step on weights that are equal or all 0, or of a gain above 6 or below 0.001."""

    cause = "bad initialisation"
    advice: ClassVar[Advice] = {
        "bad initialisation": (
            "Leave the framework's own initialisation, or use Kaiming (ReLU) or Xavier (tanh, sigmoid).",
            "Never start all weights of a layer at the same value: its units would never differ.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.is_done = False
        self.missing: str | None = None

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        if self.is_done:
            self.looked, self.not_checked = False, self.missing
            return
        self.is_done = True
        table = Parameters.of(seen)
        if table is None:
            self.missing = "no statistics of parameters were saved"
        elif seen.step != _LAST_FIRST_STEP:
            self.missing = f"the first saved step is {seen.step}: the weights have moved since they were made"
        if table is None or self.missing:
            self.looked, self.not_checked = False, self.missing
            return
        modules = Modules.of(seen)
        judged = [
            int(place)
            for place in where(table.is_weight & table.present & ~table.is_frozen)
            if any(part in table.classes[place] for part in _JUDGED) and table.units[place] > 1
        ]
        if not judged:
            self.missing = "no trained layer is known to be dense or convolutional"
            self.lacks(self.missing)
            return
        if not _any_weight(table):
            for place in judged[:MOST_NAMED]:
                message = (
                    f"All weights of {table.names[place]} start at 0, as those of every other layer: no "
                    "gradient passes them, and the units of a layer never differ"
                )
                why = f"0 of {int((table.is_weight & table.present).sum())} weights have a value other than 0"
                yield self._found(table.names[place], message, "rms", 0.0, 0.0, why, "All weights start at 0")
            return
        gains = {place: _gain(table, place) for place in judged}
        small = [place for place, gain in gains.items() if 0 < gain < TOO_SMALL]
        for place in judged:
            name, layer = table.names[place], modules.described(table.layers[place])
            mean = float(table.column("mean")[place])
            if table.column("min")[place] == table.column("max")[place] and mean != 0:
                message = f"All weights of {name} start at {mean:.4g}: the units of {layer} never differ"
                why = f"{int(table.sizes[place])} weights, 1 value"
                yield self._found(
                    name, message, "spread", 0.0, 0.0, why, "All weights of a layer start equal"
                )
            elif gains[place] > TOO_LARGE:
                message = (
                    f"The weights of {name} start with a gain of {gains[place]:.3g}: {layer} multiplies "
                    "its input by about as much"
                )
                why = f"Gain {gains[place]:.3g}, where Kaiming has 1.4 and Xavier 1"
                title = "The first weights are too large"
                yield self._found(name, message, "gain", gains[place], TOO_LARGE, why, title)
            elif place in small and 2 * len(small) >= len(judged):
                message = (
                    f"The weights of {name} start with a gain of "
                    f"{gains[place]:.2g}: {layer} gives nearly zero"
                )
                why = f"Gain {gains[place]:.2g}, where Kaiming has 1.4 and Xavier 1"
                title = "The first weights are too small"
                yield self._found(name, message, "gain", gains[place], TOO_SMALL, why, title)

    def _found(
        self, name: str, message: str, statistic: str, value: float, limit: float, why: str, title: str
    ) -> Finding:
        advice = self.advice["bad initialisation"]
        return self.finding(
            message,
            since=0,
            tensor=name,
            statistic=statistic,
            value=value,
            limit=limit,
            title=title,
            why=(why,),
            advice=advice[::-1] if statistic != "gain" else advice[:1],
        )


def _any_weight(table: Parameters) -> bool:
    """Whether any weights start at something else than 0; a model with a single layer may begin there."""
    weights = table.is_weight & table.present
    return int(weights.sum()) < 2 or bool((table.column("rms")[weights] > 0).any())


def _gain(table: Parameters, place: int) -> float:
    inputs = table.sizes[place] / max(1, int(table.units[place]))
    return float(table.column("std")[place] * np.sqrt(inputs))
