"""A loss that does not fall: the model learns nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observed_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss_history import finite_losses, level

LEAST_LOSSES, LEAST_OF_TWO_CLASSES = 150, 300
"""Two classes may need a boundary that takes long to find; of more classes, some pair is easy."""
MOST_BLOCKS = 64
CHANCE = 0.95
"""A cross entropy above this share of ln(classes) is that of guessing."""
FALL = 0.02
SIGNIFICANT = 2.5
"""A slope of so many standard errors is no chance: the loss falls, if slowly."""


class StuckLoss(DefaultRule):
    """Fires when the cross entropy stays at chance, or another known loss at its first level.

    Losses that no known criterion computes, and those of several models that are trained against each other,
    are not judged: they need not fall.
    """

    cause = "not learning"
    advice: ClassVar[Advice] = {
        "not learning": (
            "Check that inputs and labels belong together: look at some pairs of a batch.",
            "Try to overfit a single batch: if that fails, the fault is in the model or the loss, "
            "not in the data.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.losses = loss_history.empty()
        self.blocks: list[float] = []
        self.block_size = 4
        self.rest: list[float] = []
        self.classes = 0

    def look(self, seen: ObservedStep) -> Iterator[Finding]:
        steps, values = finite_losses(seen)
        loss_history.extend(self.losses, steps, values)
        self._add_to_blocks(values.tolist())
        facts = seen.facts
        loss = facts.get("loss") or {}
        terms = loss.get("terms") or []
        self.classes = max([self.classes, *(term.get("classes") or 0 for term in terms)])
        if len(terms) != 1 or len(facts.get("optimizers") or ()) != 1:
            self.looked = False
            return
        least = LEAST_OF_TWO_CLASSES if self.classes == 2 else LEAST_LOSSES
        if self.losses["count"] < least:
            return
        start = level(self.losses["first"])
        now = level(self.losses["last"])
        chance = math.nan
        if terms[0].get("criterion") == "cross entropy" and self.classes > 1:
            chance = math.log(self.classes) * abs(loss.get("factor") or 1.0)
            stuck = now > CHANCE * chance and now > (1 - FALL) * start
            what = f"guessing among {self.classes} classes gives {chance:.4g}"
        else:
            stuck = abs(start - now) < FALL * abs(start) and self._noise() < FALL * abs(start)
            what = "it has not changed"
        if stuck and slope_score(self.blocks) > -SIGNIFICANT:
            yield self.finding(
                f"The loss is {now:.4g} after {self.losses['count']} steps, and was {start:.4g} at the "
                f"start: {what}",
                since=self.losses["since"] or 0,
                tensor="loss",
                statistic="median of the last losses",
                value=now,
                limit=start if math.isnan(chance) else CHANCE * chance,
            )

    def _noise(self) -> float:
        """The standard error of the level of the last losses: without power there is no verdict."""
        return float(np.std(self.losses["last"]) / len(self.losses["last"]) ** 0.5)

    def _add_to_blocks(self, values: list[float]) -> None:
        """Keep the means of all losses so far, in at most `MOST_BLOCKS` blocks of equal size."""
        self.rest += values
        while len(self.rest) >= self.block_size:
            block = np.array(self.rest[: self.block_size])
            self.blocks.append(float(np.add.reduce(block)) / self.block_size)
            del self.rest[: self.block_size]
            if len(self.blocks) == MOST_BLOCKS:
                pairs = np.array(self.blocks).reshape(-1, 2)
                self.blocks = pairs.mean(1).tolist()
                self.block_size *= 2


def slope_score(levels: Sequence[float]) -> float:
    """The slope of the last four fifths of a series, in standard errors; 0 with too few values."""
    values = np.array(levels[len(levels) // 5 :])
    if len(values) < 8:
        return 0.0
    place = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float(place @ values) / float(place @ place)
    residual = values - values.mean() - slope * place
    error = math.sqrt(float(residual @ residual) / (len(values) - 2) / float(place @ place))
    return slope / error if error > 0 else math.copysign(math.inf, slope) if slope else 0.0
