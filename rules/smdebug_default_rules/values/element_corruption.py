"""Single values that no computation explains: a flipped bit, or a defective device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.numbers.rows import COLUMN
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule, Retired
from smdebug_default_rules.peaks import Peaks
from smdebug_default_rules.tensors import Floats, Mask

LEAST_STEPS = 8
LEAST_VALUES = 64
DOMINATES = 0.7
"""A single value with at least this share of the tensor's norm is an outlier."""
JUMP = 20.0
"""Largest over typical magnitude, against the largest such ratio of the tensor's own past."""
RISEN = 8.0
"""The value itself against the largest of its past: if only the spread shrinks, it has not changed.

It is also compared with the rise of the other tensors: if another has risen, the training explodes.
"""


class ElementCorruption(DefaultRule):
    """Fires when one value of a gradient, update or parameter stands out as never before in that tensor."""

    cause = "corruption"
    needs = "no statistics of parameters, gradients or updates were saved"
    advice: ClassVar[Advice] = {
        "corruption": (
            "Resume from the last checkpoint before this step, and check whether the value "
            "recurs on other hardware: if not, the device is suspect.",
            "Check the memory and error counters of the device, such as nvidia-smi -q -d ECC.",
        )
    }

    past, magnitudes = Retired(), Retired()

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.peaks: dict[str, dict[str, Any]] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        named: set[str] = set()
        self.looked = False
        for kind in ("gradients", "updates", "parameters"):
            matrix = seen.own_statistics(kind)  # the spread of a sharded tensor is known of a part alone
            if matrix is None:
                continue
            self.looked = True
            magnitude, ratio, dominates = _measured(matrix.values)
            past = Peaks(self.peaks.setdefault(kind, {}), _short_names(seen, kind, matrix), 2)
            values = np.stack((ratio, magnitude))
            if not dominates.any():  # the usual case, short
                past.add(values)
                continue
            before, usual = past.largest()
            found = (
                dominates
                & (ratio > JUMP * before)
                & (magnitude > RISEN * usual * _most_that_others_have_risen(magnitude / usual))
                & (past.count()[0] >= LEAST_STEPS)
            )
            past.add(np.where(found, np.nan, values))
            for place in where(found):
                name = matrix.names[place]
                parameter = past.names[place]
                if parameter in named:
                    continue
                named.add(parameter)
                yield self.finding(
                    f"One value of {name} is {magnitude[place]:.4g}, {ratio[place]:.3g} times the "
                    "spread of the others; "
                    f"so far it was {before[place]:.3g} times at most",
                    since=seen.step,
                    tensor=name,
                    statistic="largest value over the spread of the others",
                    value=float(ratio[place]),
                    limit=float(JUMP * before[place]),
                    why=(
                        f"{magnitude[place]:.4g} at step {seen.step}, and {usual[place]:.3g} at most before",
                    ),
                )


def _most_that_others_have_risen(risen: Floats) -> float:
    """The second largest of these ratios: 1 if it is smaller, or if there are no others."""
    known = np.sort(risen[np.isfinite(risen)])
    return max(1.0, float(known[-2])) if len(known) > 1 else 1.0


def _short_names(seen: ObservedStep, kind: str, matrix: StatisticsMatrix) -> list[str]:
    """The parameter that each gradient or update is of, so that the names of all kinds are equal."""
    known = seen.shared_by_layout.setdefault("short names", {})
    if kind not in known:
        is_parameter = kind == "parameters"
        known[kind] = [name if is_parameter else name.partition("/")[2] or name for name in matrix.names]
    found: list[str] = known[kind]
    return found


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
