"""A loss that does not fall: the model learns nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.rules.robust import mad
from smdebug.trials.observed_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss_history import new_losses

LEAST_LOSSES = 100
CHANCE = 0.95
"""A cross entropy above this share of ln(classes) is that of guessing."""
FALL = 0.02


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
        self.classes = 0

    def look(self, seen: ObservedStep) -> Iterator[Finding]:
        steps, values = new_losses(seen)
        finite = np.isfinite(values)
        loss_history.extend(self.losses, steps[finite], values[finite])
        facts = seen.facts
        terms = (facts.get("loss") or {}).get("terms") or []
        self.classes = max([self.classes, *(term.get("classes") or 0 for term in terms)])
        if len(terms) != 1 or len(facts.get("optimizers") or ()) != 1:
            self.looked = False
            return
        if self.losses["count"] < LEAST_LOSSES:
            return
        first, last = np.array(self.losses["first"]), np.array(self.losses["last"])
        start, now = float(np.median(first)), float(np.median(last))
        is_classification = terms[0].get("criterion") == "cross entropy" and self.classes > 1
        chance = math.log(self.classes) if is_classification else math.nan
        scale = abs((facts.get("loss") or {}).get("factor") or 1.0)
        if is_classification:
            stuck = now > CHANCE * chance * scale and now > (1 - FALL) * start
            what = f"that of guessing among {self.classes} classes is {chance * scale:.4g}"
        else:
            # The difference of two medians has this standard error; without power there is no verdict.
            error = math.hypot(mad(first) / len(first) ** 0.5, mad(last) / len(last) ** 0.5) * 1.25
            stuck = abs(start - now) < FALL * abs(start) and error < FALL * abs(start)
            what = "it has not changed"
        if stuck:
            yield self.finding(
                f"The loss is {now:.4g} after {self.losses['count']} steps, and was {start:.4g} "
                f"at the start: {what}",
                since=self.losses["since"] or 0,
                tensor="loss",
                statistic="median of the last losses",
                value=now,
                limit=CHANCE * chance * scale if is_classification else start,
            )
