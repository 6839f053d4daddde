"""A tree model that relies on only a few features."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import tensor_label
from smdebug.rules.parameters import integer, number
from smdebug.rules.selection import TensorSelection
from smdebug_rules.loss.losses import losses_at

_WEIGHT = ".*feature_importance/weight"
_FEATURES = ["(feature_importance/.*|(average|full)_shap)/"]


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

    It never fires if the model has no more than `nfeatures` features. XGBoost omits features that no tree
    uses: they count if their importance or SHAP value was saved at any earlier step.
    """

    cause = "leaked label"
    advice: ClassVar = {
        "": (
            "Check whether the most important feature is known "
            "before the label is: it may be computed from it.",
            "Train once without that feature; compare the validation metric.",
            "Lower `colsample_bytree`, so that trees have to use other features.",
        )
    }

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
        checked, too_few = False, ""
        for (kind, worker), importance in sorted(by_kind.items()):
            total = sum(importance.values())
            count = self._features(step, importance)
            if count <= self.nfeatures or not total:
                reason = self._too_few(count) if total else "all importances are 0"
                too_few = too_few or (reason if total else "")
                yield Judged(kind, worker, skipped=reason)
                continue
            checked = True
            most = sorted(importance.items(), key=lambda item: (-item[1], item[0]))[: self.nfeatures]
            share = sum(value for _, value in most) / total
            finding = None
            if share > self.threshold:
                names = ", ".join(feature for feature, _ in most[:5])
                finding = Finding(
                    statistic="share of the importance",
                    value=share,
                    threshold=self.threshold,
                    message=f"{tensor_label(kind, worker, trial)}: {len(most)} of {count} features "
                    f"have {share:.4g} of the importance (limit {self.threshold:g}): {names}",
                    details={"features": {name: value / total for name, value in most[:20]}},
                )
            yield Judged(kind, worker, finding, badness=share, value=share)
        if too_few and not checked:
            self.not_checked = too_few

    def _too_few(self, count: int) -> str:
        return (
            f"{count} feature{'s have' if count != 1 else ' has'} an importance, and more than "
            f"{self.nfeatures} features are needed. XGBoost omits those that no tree uses; with the "
            "collection average_shap they are known"
        )

    def _features(self, step: int, importance: Mapping[str, float]) -> int:
        """Return the number of the model's features, as far as the run up to this step shows them."""
        if len(importance) > self.nfeatures:
            return len(importance)
        known = set(importance)
        for name in self.base_trial.tensor_names(regex=_FEATURES):
            tensor = self.base_trial.tensor(name)
            first = tensor.first_seen(ModeKeys.GLOBAL)
            if first is not None and first <= step:
                known.add(_feature_of(name))
        return len(known)


def _feature_of(name: str) -> str:
    """Return the feature in `feature_importance/gain/age` and `average_shap/age`."""
    return name.partition("_shap/")[2] or kind_and_feature(name)[1]
