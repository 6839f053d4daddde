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

LEAST_STEPS = 8
LEAST_VALUES = 64
DOMINATES = 0.7
"""A single value that stands for this share of the tensor's norm, or more, is out of its company."""
LEAST_OF_LARGEST = 0.5
"""The value is at least this share of what the largest one of the tensor usually is."""
JUMP = 20.0
"""Largest over typical magnitude, against the largest such ratio of the tensor's own past."""


RISEN = 5.0
"""The value itself against the usual largest one: if only the spread shrinks, it has not changed."""


class ElementCorruption(DefaultRule):
    """Fires when one value of a gradient, update or parameter stands out as never before in that tensor."""

    cause = "corruption"
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
        for kind in ("gradients", "updates", "parameters"):
            matrix = seen.statistics(kind)
            if matrix is None:
                continue
            values = matrix.values
            magnitude = np.fmax(np.abs(values[:, COLUMN["min"]]), np.abs(values[:, COLUMN["max"]]))
            typical = np.fmax(
                values[:, COLUMN["p95"]] - values[:, COLUMN["p05"]],
                values[:, COLUMN["p75"]] - values[:, COLUMN["p25"]],
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(typical > 0, magnitude / typical, np.nan)
                norm = values[:, COLUMN["rms"]] * np.sqrt(values[:, COLUMN["count"]])
                share = magnitude / norm
            past = Past(self.past.setdefault(kind, {}), matrix.names)
            sizes = Past(self.past.setdefault(f"{kind} largest", {}), matrix.names)
            before = past.largest()
            # Where all values become tiny, one that becomes less tiny than the others is not changed.
            is_large = magnitude >= LEAST_OF_LARGEST * np.nan_to_num(sizes.median())
            magnitudes = Past(self.magnitudes.setdefault(kind, {}), matrix.names)
            found = (
                (ratio > JUMP * before)
                & (share > DOMINATES)
                & is_large
                & (magnitude > RISEN * magnitudes.median())
                & (past.count() >= LEAST_STEPS)
                & (values[:, COLUMN["count"]] >= LEAST_VALUES)
            )
            past.add(np.where(found, np.nan, ratio))
            sizes.add(np.where(found, np.nan, magnitude))
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
