"""Boosted trees whose labels are nearly all of one class, or that weigh the rare class the wrong way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice
from smdebug_default_rules.boosting import TRAINING, VALIDATION, BoostingRule, Losses, is_boosted

LIMIT = 0.97
LEAST_ROWS = 1000
LEAST_ROUNDS = 20
BETTER_THAN_GUESSING = 0.7
STILL_FALLING = 0.97
"""Below this share of the loss ten rounds before, it still falls, and the rare class may yet be learnt."""
CLEARLY = 5.0


class BoostingBalance(BoostingRule):
    """Fires when 97 % of XGBoost's labels are of one class, unweighted, and the loss is that of guessing.

    Also when `scale_pos_weight` makes the rarer class lighter by a factor of five or more.
    """

    cause = "imbalance"
    advice: ClassVar[Advice] = {
        "imbalance": (
            "Set scale_pos_weight to the number of negative labels "
            "over that of positive ones, or give the rows weights.",
            "Judge the model by aucpr, precision and recall of the rare class, not by error or accuracy.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.data: dict[str, Any] = {}
        self.weight = 1.0

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        if is_boosted(seen):
            self.data = dict(seen.facts.get("data") or {})
            self.weight = float(seen.facts["arguments"].get("scale_pos_weight") or 1)
            if not self.data:
                self.lacks("the training data is not known: give the hook `train_data`")
                return
        labels = self.data.get("labels") or {}
        if labels.get("classes_seen") != 2:
            self.looked = False
            return
        losses = self.losses_so_far(seen)
        share = float(labels["largest_share"])
        if not 0 < share < 1:
            self.lacks("the share of the commonest label is not known")
            return
        ratio = share / (1 - share)  # negative labels over positive ones
        ratio = ratio if labels["largest_class"] == 0 else 1 / ratio
        if self._is_turned_round(ratio):
            yield self.finding(
                f"scale_pos_weight is {self.weight:.3g}, which makes the rarer class lighter still: for "
                f"balance it is {ratio:.3g}",
                since=self.first or 0,
                tensor="labels",
                statistic="scale_pos_weight",
                value=self.weight,
                limit=ratio,
                title="The class weight is the wrong way round",
                why=(f"{ratio:.3g} negative labels for each positive one",),
                advice=(f"Set scale_pos_weight to {ratio:.3g}, negative labels over positive ones.",),
            )
        elif self.weight == 1 and not self.data.get("weighted"):
            yield from self._guessing(share, int(labels["targets"]), losses)

    def _is_turned_round(self, ratio: float) -> bool:
        weight, balance = math.log(max(self.weight, 1e-9)), math.log(ratio)
        return weight * balance < 0 and min(abs(weight), abs(balance)) >= math.log(CLEARLY)

    def _guessing(self, share: float, rows: int, losses: Losses) -> Iterator[Finding]:
        if share < LIMIT or rows < LEAST_ROWS:
            return
        guessing = -(share * math.log(share) + (1 - share) * math.log(1 - share))
        found = [*losses.of(VALIDATION).items(), *losses.of(TRAINING).items()]
        name, known = next(((n, k) for n, k in found if k["metric"] == "logloss"), ("", None))
        if known is None or known["count"] < LEAST_ROUNDS:
            return
        now, before = median(known["last"][-5:]), known["last"][max(0, len(known["last"]) - 11)]
        if now < BETTER_THAN_GUESSING * guessing or now < STILL_FALLING * before:
            return
        yield self.finding(
            f"{share:.1%} of {rows} labels are of one class, and {name} is {now:.3g}, no better than always "
            f"guessing it ({guessing:.3g})",
            since=self.first or 0,
            tensor="labels",
            statistic="share of the commonest class",
            value=share,
            limit=LIMIT,
            why=(f"{round((1 - share) * rows)} of {rows} rows are of the other class",),
        )
