"""Boosted trees that do not learn: no splits, a learning rate of nearly nothing, or far too large a one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, ClassVar

from smdebug.files.observations import FIRST_LEARNING_RATE
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice
from smdebug_default_rules.boosting import TRAINING, BoostingRule, is_boosted
from smdebug_default_rules.rates import newest_rates

LEAST_ROUNDS = 20
LEAST_RATE = 5e-4
HARDLY = 0.02
"""With a rate that small, the training loss changes by less than this share."""
RISEN = 1.5
LARGEST_RATE = 1.0
ROUNDS_WITHOUT_SPLIT = 3


class BoostingProgress(BoostingRule):
    """Fires when trees of XGBoost have no split, when eta is too small to learn, or the training loss rises.

    A loss of the training data falls from round to round unless the rate is too large, or gradients of an
    objective of one's own have the wrong sign.
    """

    cause = "not learning"
    advice: ClassVar[Advice] = {
        "not learning": (
            "Lower min_child_weight, gamma and reg_alpha, or max_depth may be 0: no split was worth it.",
            "Check that features vary, and that labels do.",
        ),
        "learning rate": ("Set eta to 0.05-0.3, and choose the number of rounds by validation.",),
        "exploding": (
            "Check the sign of gradients and hessians of an objective of your own: the gradient is that of "
            "the loss, and the hessian is positive.",
            "Lower eta.",
        ),
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.rate = 0.0
        self.boosted = False
        self.without_split = 0
        self.since_split = 0

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        self.boosted = self.boosted or is_boosted(seen)
        if not self.boosted:
            self.looked = False
            return
        self.rate = max([self.rate, *newest_rates(seen).values()])
        losses = self.losses_so_far(seen)
        if is_boosted(seen):
            yield from self._splits(seen)
        for name, known in losses.of(TRAINING).items():
            if known["count"] >= LEAST_ROUNDS:
                yield from self._course(name, known)

    def _splits(self, seen: ObservedStep) -> Iterator[Finding]:
        arguments = seen.facts["arguments"]
        labels = (seen.facts.get("data") or {}).get("labels") or {}
        has_trees = arguments.get("booster") != "gblinear" and "top_features" in seen.facts
        if not has_trees or seen.facts["top_features"] or labels.get("classes_seen") == 1:
            self.without_split = 0
            return
        self.since_split = seen.step if not self.without_split else self.since_split
        self.without_split += 1
        if self.without_split >= ROUNDS_WITHOUT_SPLIT:
            yield self.finding(
                f"No tree has a split after {seen.step + 1} rounds: every row gets the same prediction",
                since=self.since_split,
                tensor="predictions",
                statistic="saved rounds without a split",
                value=self.without_split,
                limit=ROUNDS_WITHOUT_SPLIT,
                title="The trees have no splits",
                why=(f"0 splits in {self.without_split} saved rounds{_least_weight(arguments)}",),
            )

    def _course(self, name: str, known: dict[str, Any]) -> Iterator[Finding]:
        first, now = known["first"], median(known["last"][-5:])
        if 0 < self.rate < LEAST_RATE and abs(now - first) < HARDLY * abs(first):
            yield self.finding(
                f"eta is {self.rate:.3g}: after {known['count']} rounds {name} is {now:.4g}, and was "
                f"{first:.4g} after the first",
                cause="learning rate",
                since=self.first or 0,
                tensor=FIRST_LEARNING_RATE,
                statistic="eta",
                value=self.rate,
                limit=LEAST_RATE,
                title="The learning rate (eta) is too low",
                why=(f"The loss changed by {abs(now - first) / abs(first):.2%} in {known['count']} rounds",),
            )
        elif first > 0 and now > RISEN * first and known["last"][-1] > RISEN * known["best"]:
            is_fast = self.rate > LARGEST_RATE
            yield self.finding(
                f"{name} rose from {first:.4g} to {now:.4g}"
                + (f" with an eta of {self.rate:.3g}" if is_fast else ": each round makes it worse"),
                cause="learning rate" if is_fast else "exploding",
                since=known["best_step"] + 1,
                tensor=name,
                statistic="times the first",
                value=now / first,
                limit=RISEN,
                title="The learning rate (eta) is too high" if is_fast else "Each round makes the loss worse",
                why=(
                    f"{now:.4g} after {known['count']} rounds, {known['best']:.4g} at best in round "
                    f"{known['best_step']}",
                ),
            )


def _least_weight(arguments: Mapping[str, Any]) -> str:
    """The arguments that keep a tree from splitting, as far as they were given."""
    given = [
        f"{name} {arguments[name]}"
        for name in ("max_depth", "min_child_weight", "gamma", "reg_alpha", "alpha")
        if arguments.get(name) is not None
    ]
    return f", with {', '.join(given)}" if given else ""
