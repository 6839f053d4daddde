"""A feature that is the label in other words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.boosting import is_boosted

EXPLAINED = 0.98
SHARE = 0.9
LEAST_FEATURES = 3


class LeakedLabel(DefaultRule):
    """Fires when one feature of an XGBoost training has 90 % of the gain and is the label in other words.

    That is: the label explains 98 % of its variance, or it has a value that only one class has. It needs the
    training data, which `smdebug.start` and `smdebug run` find, and the hook takes as `train_data`.
    """

    cause = "leaked label"
    needs = "the run is not an XGBoost training saved from its first round"
    advice: ClassVar[Advice] = {
        "leaked label": (
            "Find out when the value of this feature becomes known: if that is with the label or after it, "
            "leave the feature out.",
            "Train without it. If the validation gets much worse, and is still good enough, trust that.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: dict[str, int] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        if not is_boosted(seen):
            self.looked = False
            return
        data = seen.facts.get("data")
        if not data:
            self.lacks("the training data is not known: give the hook `train_data`")
            return
        top = seen.facts.get("top_feature") or {}
        features = int(data["shapes"][0][1])
        if features < LEAST_FEATURES:
            self.lacks(f"the training data has fewer than {LEAST_FEATURES} features")
            return
        explained, share = float(top.get("explained") or 0), float(top.get("share") or 0)
        if explained < EXPLAINED or share < SHARE:
            self.since = {}
            return
        name = str(top["name"])
        self.since = {name: self.since.get(name, seen.step)}
        yield self.finding(
            f"{name} has {share:.0%} of the gain among {features} features, and the label explains "
            f"{explained:.1%} of its variance: it reveals the label",
            since=self.since[name],
            tensor=name,
            statistic="share of its variance that the label explains",
            value=explained,
            limit=EXPLAINED,
            why=(f"{share:.0%} of the gain is of 1 feature; {features - 1} others share {1 - share:.0%}",),
        )
