"""A page that tells how an XGBoost training is going; it finds nothing, and never fires."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.rules import Rule
from smdebug.rules.looking import TensorSelection, each_worker, value_of
from smdebug_rules.classes import ClassesUnknown, prediction_row
from smdebug_rules.losses import losses_at
from smdebug_rules.xgboost_page import Training, is_classification, page

REPORT = "rule-output/CreateXgboostReport/xgboost_report.html"
_MOST_POINTS = 1000
_MOST_METRICS = 100


class CreateXgboostReport(Rule):
    """Writes `rule-output/CreateXgboostReport/xgboost_report.html` beside the run's files.

    It is written anew at every step, and made of the collections metrics, feature_importance,
    hyperparameters, labels and predictions, as far as they were saved. A run that cannot be written to is
    named in a warning.
    """

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.metrics: dict[str, list[list[float]]] = {}
        self.hyperparameters: dict[str, str] = {}

    def invoke_at_step(self, step: int) -> bool:
        self._add_metrics(step)
        self._add_hyperparameters(step)
        importance = self._importance(step)
        labels, predictions, scores = self._labels_and_predictions(step)
        self.looked = bool(self._names("metrics", step) or importance) or labels is not None
        if not self.looked:
            return False
        training = Training(
            self.base_trial.name,
            step,
            self.metrics,
            importance,
            self.hyperparameters,
            labels,
            predictions,
            scores,
        )
        try:
            self.base_trial.storage.write(REPORT, page(training).encode())
        except (SMDebugError, OSError) as problem:
            self.skipped[REPORT] = f"it cannot be written: {problem}"
            self.logger.warning(
                "Rule %s: %s cannot be written: %s", self.rule_name, REPORT, problem
            )
        return False

    def _names(self, collection: str, step: int) -> list[str]:
        return TensorSelection([collection]).names(self.base_trial, step)

    def _add_metrics(self, step: int) -> None:
        for name, _, value in losses_at(self.base_trial, self._names("metrics", step), step):
            series = self.metrics.get(name)
            if value is None or not math.isfinite(value):
                continue
            if series is None:
                if len(self.metrics) >= _MOST_METRICS:
                    continue
                series = self.metrics[name] = []
            if series and series[-1][0] == step:
                continue  # another worker's
            series.append([step, value])
            if len(series) > _MOST_POINTS:
                self.metrics[name] = series[::2]

    def _add_hyperparameters(self, step: int) -> None:
        for tensor, worker in each_worker(
            self.base_trial, self._names("hyperparameters", step), step
        ):
            value = value_of(tensor, step, ModeKeys.GLOBAL, worker)
            if value is not None and value.size == 1 and len(self.hyperparameters) < 500:
                told = value.reshape(-1)[0]
                told = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
                self.hyperparameters[tensor.name.rpartition("/")[2]] = told[:200]

    def _importance(self, step: int) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        names = self._names("feature_importance", step)
        for name, _, value in losses_at(self.base_trial, names, step):
            kind, _, feature = name.removeprefix("feature_importance/").rpartition("/")
            if value is not None and math.isfinite(value):
                found.setdefault(kind, {})[feature] = value
        return found

    def _labels_and_predictions(self, step: int) -> tuple[Any, Any, Any]:
        labels, predictions = (self._gathered(name, step) for name in ("labels", "predictions"))
        if labels is None:
            return None, None, None
        labels = labels.reshape(-1)
        if predictions is None:
            return labels, None, None
        scores = predictions.reshape(-1)
        if not is_classification(labels):
            return labels, scores if scores.size == labels.size else None, None
        try:
            return labels, prediction_row(predictions, labels.size, False), scores
        except ClassesUnknown as unknown:
            self.skipped["predictions"] = str(unknown)
            return labels, None, None

    def _gathered(self, collection: str, step: int) -> Any:
        """The values of all workers, one after the other."""
        parts = []
        for tensor, worker in each_worker(self.base_trial, self._names(collection, step)[:1], step):
            value = value_of(tensor, step, ModeKeys.GLOBAL, worker)
            if value is not None and value.size and value.dtype.kind in "biuf":
                parts.append(value.astype(np.float64))
        if not parts or any(one.shape[1:] != parts[0].shape[1:] for one in parts):
            return None
        found = np.concatenate(parts)
        return found if np.isfinite(found).all() else None
