"""Labels of which nearly all are of one class, and a model that learns no more than that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss_history import finite_losses

LIMIT = 0.97
LEAST_TARGETS = 1000
LEAST_LOSSES = 120
STILL_FALLING = 0.9
"""Below this share of the losses before, the last ones still fall, and the rare class may yet be learnt."""
BETTER_THAN_GUESSING = 0.7


class LabelBalance(DefaultRule):
    """Fires when one class has 97 % of the labels and the loss is that of always guessing it."""

    cause = "imbalance"
    needs = "no single loss over class labels was saved"
    advice: ClassVar[Advice] = {
        "imbalance": (
            "Weight the classes in the loss, or sample the rare ones more often.",
            "Judge the model by precision and recall of the rare class, not by accuracy.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.targets: dict[int, float] = {}
        self.total = 0
        self.losses = loss_history.empty()
        self.first: int | None = None

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss_history.extend(self.losses, *finite_losses(seen))
        terms = (seen.facts.get("loss") or {}).get("terms") or []
        if len(terms) != 1 or not terms[0].get("targets"):
            self.looked = False
            return
        term = terms[0]
        count, largest = term["targets"], term["largest_class"]
        self.targets[largest] = self.targets.get(largest, 0.0) + count * term["largest_share"]
        self.total += count
        self.first = seen.step if self.first is None else self.first
        commonest = max(self.targets, key=lambda known: self.targets[known])
        share = self.targets[commonest] / self.total
        if share < LIMIT:
            return
        if self.total < LEAST_TARGETS or self.losses["count"] < LEAST_LOSSES:
            self.lacks("there are too few labels and losses so far to judge them")
            return
        rare = max(1 - share, 1 / self.total)
        guessing = -(share * math.log(max(share, 1e-12)) + rare * math.log(rare))
        half = len(self.losses["last"]) // 2
        before, now = (
            sum(losses) / len(losses) for losses in (self.losses["last"][:half], self.losses["last"][half:])
        )
        if now < BETTER_THAN_GUESSING * guessing or now < STILL_FALLING * before:
            return
        yield self.finding(
            f"{share:.1%} of {self.total} labels are of class {commonest}, and the loss of "
            f"{now:.3g} is that of always "
            f"guessing it ({guessing:.3g})",
            since=self.first,
            tensor="loss",
            statistic="share of the commonest class",
            value=share,
            limit=LIMIT,
        )
