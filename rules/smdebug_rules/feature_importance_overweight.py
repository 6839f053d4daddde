"""A few features on which a model of trees relies for nearly everything."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import tensor_label
from smdebug.rules.parameters import integer, number
from smdebug.rules.selection import TensorSelection
from smdebug_rules.losses import losses_at

_WEIGHT = ".*feature_importance/weight"


def kind_and_feature(name: str) -> tuple[str, str]:
    """`feature_importance/weight` and `age` of the two together; a feature may have a / in its name."""
    before, prefix, told = name.partition("feature_importance/")
    kind, slash, feature = told.partition("/")
    if slash:
        return f"{before}{prefix}{kind}", feature
    kind, _, feature = name.rpartition("/")
    return kind, feature


class FeatureImportanceOverweight(TensorRule):
    """Fires when the `nfeatures` most important features have more than `threshold` of all importance.

    With no more features than that, there is nothing to compare them with, and it never fires.
    """

    def __init__(
        self,
        base_trial: Any,
        threshold: Any = 0.8,
        nfeatures: Any = 3,
        tensor_regex: Any = _WEIGHT,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.threshold = number("threshold", threshold, minimum=0, maximum=1)
        self.nfeatures = integer("nfeatures", nfeatures, minimum=1)
        self.selection = TensorSelection(None, tensor_regex or _WEIGHT)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        by_kind: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for name, worker, value in losses_at(trial, self.selection.names(trial, step), step):
            kind, feature = kind_and_feature(name)
            if value is None or not math.isfinite(value) or value < 0:
                yield Judged(name, worker, skipped="it is no importance: a number from 0")
            else:
                by_kind[kind or name, worker][feature] = value
        for (kind, worker), importance in sorted(by_kind.items()):
            total = sum(importance.values())
            if len(importance) <= self.nfeatures or not total:
                reason = (
                    f"there are {len(importance)} features, of which {self.nfeatures} are too many"
                    if total
                    else "all importances are 0"
                )
                yield Judged(kind, worker, skipped=reason)
                continue
            most = sorted(importance.items(), key=lambda one: (-one[1], one[0]))[: self.nfeatures]
            share = sum(value for _, value in most) / total
            finding = None
            if share > self.threshold:
                told = ", ".join(feature for feature, _ in most[:5])
                finding = Finding(
                    statistic="share of the importance",
                    value=share,
                    threshold=self.threshold,
                    message=f"{tensor_label(kind, worker, trial)}: {len(most)} of {len(importance)} features "
                    f"have {share:.4g} of the importance, more than {self.threshold:g}: {told}",
                    details={"features": {name: value / total for name, value in most[:20]}},
                )
            yield Judged(kind, worker, finding, badness=share)
