"""A tree model that relies on only a few features."""

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
    """Split `feature_importance/weight/age` into the kind and the feature, which may contain a slash."""
    before, prefix, rest = name.partition("feature_importance/")
    kind, slash, feature = rest.partition("/")
    if slash:
        return f"{before}{prefix}{kind}", feature
    kind, _, feature = name.rpartition("/")
    return kind, feature


class FeatureImportanceOverweight(TensorRule):
    """Fires when the `nfeatures` most important features have more than `threshold` of all importance.

    It never fires if there are no more than `nfeatures` features.
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
                yield Judged(name, worker, skipped="an importance must be a number of at least 0")
            else:
                by_kind[kind or name, worker][feature] = value
        for (kind, worker), importance in sorted(by_kind.items()):
            total = sum(importance.values())
            if len(importance) <= self.nfeatures or not total:
                reason = (
                    f"it has {len(importance)} features, and more than {self.nfeatures} are needed"
                    if total
                    else "all importances are 0"
                )
                yield Judged(kind, worker, skipped=reason)
                continue
            most = sorted(importance.items(), key=lambda item: (-item[1], item[0]))[
                : self.nfeatures
            ]
            share = sum(value for _, value in most) / total
            finding = None
            if share > self.threshold:
                names = ", ".join(feature for feature, _ in most[:5])
                finding = Finding(
                    statistic="share of the importance",
                    value=share,
                    threshold=self.threshold,
                    message=f"{tensor_label(kind, worker, trial)}: {len(most)} of {len(importance)} features "
                    f"have {share:.4g} of the importance (limit {self.threshold:g}): {names}",
                    details={"features": {name: value / total for name, value in most[:20]}},
                )
            yield Judged(kind, worker, finding, badness=share)
