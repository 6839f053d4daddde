"""A model that gives the same output for every input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.numbers.rows import sampled_places
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.boosting import is_boosted
from smdebug_default_rules.scales import poorly_scaled_inputs
from smdebug_default_rules.tensors import Modules

LIMIT = 1e-5
"""Spread of an output over the rows of a batch, as a share of its magnitude."""
LEAST_ROWS = 8
LEAST_STEPS = 3


_SOFTMAX = "Do not put a softmax over a single unit: use a sigmoid, or two units."


class ConstantOutput(DefaultRule):
    """Fires when the output hardly differs between the rows of a batch, three saved steps in a row."""

    cause = "constant output"
    needs = "the model's input and output were not saved"
    advice: ClassVar[Advice] = {
        "constant output": (
            _SOFTMAX,
            "Look for the first layer whose output is "
            "constant: it is dead or saturated, or its input is constant.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps = 0
        self.since = 0

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        outputs, inputs = seen.statistics("outputs"), seen.statistics("inputs")
        name = Modules.of(seen).output
        if outputs is None or inputs is None or name not in outputs or is_boosted(seen):
            self.looked = False
            return
        place = outputs.names.index(name)
        shape = outputs.tensors[place].shape
        spread = _spread(shape, outputs.row(name), seen.samples("outputs").get(name))
        varied = inputs.column("std")[0] > 0 and seen.facts.get("distinct_rows", 2) != 1
        if spread is None:
            self.lacks("the model's output has too few rows, or too many units, to compare its rows")
        if spread is None or not varied or spread > LIMIT:
            self.steps = 0
            return
        self.since = seen.step if not self.steps else self.since
        self.steps += 1
        if self.steps >= LEAST_STEPS:
            yield self.finding(
                f"{name} is the same for all {shape[0]} rows of the batch",
                since=self.since,
                tensor=name,
                statistic="spread over the rows, as a share of the magnitude",
                value=spread,
                limit=LIMIT,
                **self._case(seen, name, shape, spread),
            )

    def _case(self, seen: ObservedStep, name: str, shape: tuple[int, ...], spread: float) -> dict[str, Any]:
        """The numbers that convince, and what to try: a softmax over one unit always returns 1."""
        outputs = seen.statistics("outputs")
        assert outputs is not None
        row = outputs.row(name)
        is_softmax = shape[-1:] == (1,) and row["min"] == row["max"] == 1
        first, other = self.advice["constant output"]
        scale = poorly_scaled_inputs(seen)
        hint = (scale.advice,) if scale else ()
        return {
            "why": (
                f"{shape[0]} different rows, and the spread of the output is {spread:.2g} of its size",
                *((scale.why,) if scale else ()),
            ),
            "advice": (first,) if is_softmax else (*hint, other),
        }


def _spread(shape: tuple[int, ...], row: dict[str, float], sample: Any) -> float | None:
    """The largest spread of an output unit over the rows, relative to its magnitude, as far as sampled."""
    if not shape or shape[0] < LEAST_ROWS or len(shape) > 2:
        return None
    magnitude = row["rms"]
    if row["std"] <= LIMIT * magnitude or magnitude == 0:
        return 0.0
    units = shape[1] if len(shape) == 2 else 1
    if units == 1:
        return row["std"] / magnitude
    if sample is None or len(sample) < 8 or units * 3 > len(sample):
        return None
    columns = sampled_places(int(row["count"]), len(sample)) % units
    spreads = [float(np.ptp(sample[columns == unit])) for unit in range(units) if np.sum(columns == unit) > 2]
    return max(spreads) / magnitude if spreads else None
