"""Boosted trees that learn their training data and not the task."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice
from smdebug_default_rules.boosting import (
    LIKELIHOODS,
    TRAINING,
    VALIDATION,
    BoostingRule,
    is_boosted,
)

LEAST_ROUNDS = 20
PATIENCE = 10
WORSE, WORSE_DISTANCE = 1.15, 1.07
"""Against the best: of a likelihood, and of a distance, which is the root of a likelihood's square."""
NEVER_BETTER = 0.05
LEARNT = 0.4
CHANCE_SCORE = 3.0
"""Predictions within this many standard errors of chance have learnt nothing of the task."""


class BoostingGeneralisation(BoostingRule):
    """Fires when a validation loss of XGBoost is well above its best while the training loss falls.

    If it never got better than at first, and predictions agree with the labels no more than by chance, the
    trees memorise. A training that stops early keeps its best round, and is not reported as overfitting.
    """

    cause = "overfitting"
    advice: ClassVar[Advice] = {
        "overfitting": (
            "Stop at the best round: early_stopping_rounds, or predict with iteration_range.",
            "Use shallower trees, a larger min_child_weight, a smaller eta, or subsample.",
        ),
        "memorising": (
            "Check that each label belongs to its row: sorting, joining and shuffling one of the two is the "
            "usual way to lose that.",
            "Train and validate on rows that you have checked by hand.",
        ),
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.boosted = False
        self.score: float | None = None
        self.stops_early = False

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        self.boosted = self.boosted or is_boosted(seen)
        if not self.boosted:
            self.looked = False
            return
        losses = self.losses_so_far(seen)
        self.stops_early = bool(seen.facts.get("stops_early", self.stops_early))
        predicted = seen.facts.get("predicted") or {}
        if predicted.get("of") == VALIDATION and "score" in predicted:
            self.score = float(predicted["score"])
        validation = losses.of(VALIDATION)
        if not validation:
            self.lacks("no validation loss was saved: give xgboost.train `evals`")
            return
        for name, known in validation.items():
            yield from self._judged(name, known, losses.of(TRAINING))

    def _judged(
        self, name: str, known: dict[str, Any], training: dict[str, dict[str, Any]]
    ) -> Iterator[Finding]:
        own = next((t for t in training.values() if t["metric"] == known["metric"]), None)
        last = known["last"][-PATIENCE:]
        if known["count"] < LEAST_ROUNDS or len(last) < PATIENCE or known["best"] <= 0:
            return
        now, best = median(last[-5:]), known["best"]
        learnt = own is not None and own["last"][-1] < (1 - LEARNT) * own["first"]
        is_at_chance = self.score is None or self.score < CHANCE_SCORE
        limit = WORSE if LIKELIHOODS.match(known["metric"]) else WORSE_DISTANCE
        is_worse = min(last) > best and now > limit * best
        never_better = best > (1 - NEVER_BETTER) * known["first"]
        if never_better and learnt and is_at_chance and (is_worse or self.score is not None):
            assert own is not None
            yield self._found(
                f"The training's {known['metric']} fell from {own['first']:.4g} to {own['last'][-1]:.4g}, "
                f"and {name} never got better than {best:.4g}: it is {now:.4g} now",
                name,
                "memorising",
                self.first or 0,
                now / best,
                limit,
                f"Predictions are {self.score:.2g} standard errors from chance; {CHANCE_SCORE:g} are clear"
                if self.score is not None
                else f"{name} was {known['first']:.4g} at first, and is {now / best:.3g} times its best",
            )
        elif is_worse and not self.stops_early and (own is None or own["last"][-1] < own["first"]):
            yield self._found(
                f"{name} is {now:.4g}, {now / best:.3g} times its best ({best:.4g} in round "
                f"{known['best_step']}), while the training's loss falls",
                name,
                "overfitting",
                known["best_step"] + 1,
                now / best,
                limit,
                f"Round {known['best_step']} was the best, {known['count']} rounds were trained",
            )

    def _found(
        self, message: str, name: str, cause: str, since: int, value: float, limit: float, why: str
    ) -> Finding:
        return self.finding(
            message,
            cause=cause,
            since=since,
            tensor=name,
            statistic="times the best validation",
            value=value,
            limit=limit,
            why=(why,),
        )
