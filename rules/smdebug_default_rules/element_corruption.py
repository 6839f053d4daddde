"""Single values that no computation explains: a flipped bit, or a defective device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.numbers.rows import COLUMN
from smdebug.rules import Finding
from smdebug.rules.robust import Past
from smdebug.trials.observed_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Floats, Mask

LEAST_STEPS = 8
LEAST_VALUES = 64
DOMINATES = 0.7
"""A single value with at least this share of the tensor's norm is an outlier."""
JUMP = 20.0
"""Largest over typical magnitude, against the largest such ratio of the tensor's own past."""
RISEN = 5.0
"""The value itself against the usual largest one: if only the spread shrinks, it has not changed."""


class ElementCorruption(DefaultRule):
    """Fires when one value of a gradient, update or parameter stands out as never before in that tensor."""

    cause = "corruption"
    needs = "no statistics of parameters, gradients or updates were saved"
    advice: ClassVar[Advice] = {
        "corruption": (
            "Resume from the last checkpoint before this step, and see whether the value comes "
            "again on other "
            "hardware: if not, the device is suspect.",
            "Check the memory and error counters of the device, such as nvidia-smi -q -d ECC.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.past: dict[str, dict[str, Any]] = {}
        self.magnitudes: dict[str, dict[str, Any]] = {}

    def look(self, seen: ObservedStep) -> Iterator[Finding]:
        named: set[str] = set()
        self.looked = False
        for kind in ("gradients", "updates", "parameters"):
            matrix = seen.statistics(kind)
            if matrix is None:
                continue
            self.looked = True
            magnitude, ratio, dominates = _measured(matrix.values)
            past = Past(self.past.setdefault(kind, {}), matrix.names)
            magnitudes = Past(self.magnitudes.setdefault(kind, {}), matrix.names)
            if not dominates.any():  # the usual case, short
                past.add(ratio)
                magnitudes.add(magnitude)
                continue
            before = past.largest()
            found = (
                dominates
                & (ratio > JUMP * before)
                & (magnitude > RISEN * magnitudes.median())
                & (past.count() >= LEAST_STEPS)
            )
            past.add(np.where(found, np.nan, ratio))
            magnitudes.add(np.where(found, np.nan, magnitude))
            for place in where(found):
                name = matrix.names[place]
                short = name.partition("/")[2] if kind != "parameters" else name
                if short in named:
                    continue
                named.add(short)
                yield self.finding(
                    f"One value of {name} is {magnitude[place]:.4g}, {ratio[place]:.3g} times the "
                    "spread of the others; "
                    f"so far it was {before[place]:.3g} times at most",
                    since=seen.step,
                    tensor=name,
                    statistic="largest value over the spread of the others",
                    value=float(ratio[place]),
                    limit=float(JUMP * before[place]),
                )


def _measured(values: Floats) -> tuple[Floats, Floats, Mask]:
    """The largest magnitude of each tensor, its ratio to the spread, and whether it makes up the norm."""
    magnitude = np.fmax(-values[:, COLUMN["min"]], values[:, COLUMN["max"]])
    typical = np.fmax(
        values[:, COLUMN["p95"]] - values[:, COLUMN["p05"]],
        values[:, COLUMN["p75"]] - values[:, COLUMN["p25"]],
    )
    count = values[:, COLUMN["count"]]
    norm = values[:, COLUMN["rms"]] * np.sqrt(count)
    ratio, share = magnitude / typical, magnitude / norm
    ratio[~(typical > 0)] = np.nan
    return magnitude, ratio, (share > DOMINATES) & (count >= LEAST_VALUES)
