"""Write a report page on an XGBoost training; this rule never fires."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.rules import Rule
from smdebug.rules.measurements import each_worker, value_of
from smdebug.rules.selection import TensorSelection
from smdebug_rules.labels.classes import ClassesUnknown, prediction_row
from smdebug_rules.loss.losses import losses_at
from smdebug_rules.trees.feature_importance_overweight import kind_and_feature
from smdebug_rules.trees.xgboost_page import Training, is_classification, page

REPORT = "rule-output/CreateXgboostReport/xgboost_report.html"
_COLLECTIONS = ("metrics", "feature_importance", "hyperparameters", "labels", "predictions")
_SECONDS = 60.0  # after which the page is written again
_MOST_POINTS = 1000
_MOST_METRICS = 100


class CreateXgboostReport(Rule):
    """Writes `rule-output/CreateXgboostReport/xgboost_report.html` beside the run's files.

    It shows the collections metrics, feature_importance, hyperparameters, labels and predictions, as far
    as they were saved. It is written at the first steps, again after a tenth more steps or a minute, and at
    the end of the run. If it cannot be written, a warning is logged.
    """

    now = staticmethod(time.time)

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.metrics: dict[str, list[list[float]]] = {}
        self.hyperparameters: dict[str, str] = {}
        self.newest: dict[str, int] = {}  # the last step that has data of that collection
        self.steps_seen = 0
        self.steps_told = 0  # steps_seen when the page was last written
        self.tried: list[float] = [0, 0.0]  # steps_seen and time of the last attempt

    def invoke_at_step(self, step: int) -> bool:
        has = {name for name in _COLLECTIONS if self._names(name, step)}
        self.looked = bool(has - {"hyperparameters", "predictions"})
        if "hyperparameters" in has:
            self._add_hyperparameters(step)
        if not self.looked:
            return False
        self._add_metrics(step)
        if "predictions" not in has and "predictions" in self.newest:
            has.discard("labels")  # keep the step that has predictions as well
        self.newest |= dict.fromkeys([*has, "a step"], step)
        self.steps_seen += 1
        if self._is_page_due():
            self._write_page()
        return False

    def invoke_at_end(self, step: int) -> bool:
        self.looked = False
        if self.steps_told < self.steps_seen:
            self._write_page()
        return False

    def _is_page_due(self) -> bool:
        steps, seconds = self.tried
        return self.steps_seen >= 1.1 * steps or self.now() - seconds >= _SECONDS

    def _write_page(self) -> None:
        self.tried = [self.steps_seen, self.now()]
        labels, predictions, scores = self._labels_and_predictions()
        training = Training(
            self.base_trial.name,
            self.newest["a step"],
            self.metrics,
            self._importance(),
            self.hyperparameters,
            labels,
            predictions,
            scores,
        )
        try:
            self.base_trial.storage.write(REPORT, page(training).encode())
            self.steps_told = self.steps_seen
        except (SMDebugError, OSError) as problem:
            self.skipped[REPORT] = f"it cannot be written: {problem}"
            self.logger.warning("Rule %s: %s cannot be written: %s", self.rule_name, REPORT, problem)

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
        for tensor, worker in each_worker(self.base_trial, self._names("hyperparameters", step), step):
            value = value_of(tensor, step, ModeKeys.GLOBAL, worker)
            if value is not None and value.size == 1 and len(self.hyperparameters) < 500:
                text = value.reshape(-1)[0]
                text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
                self.hyperparameters[tensor.name.rpartition("/")[2]] = text[:200]

    def _importance(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        step = self.newest.get("feature_importance")
        if step is None:
            return found
        names = self._names("feature_importance", step)
        for name, _, value in losses_at(self.base_trial, names, step):
            kind, feature = kind_and_feature(name)
            kind = kind.removeprefix("feature_importance/")
            if value is not None and math.isfinite(value):
                found.setdefault(kind, {})[feature] = value
        return found

    def _labels_and_predictions(self) -> tuple[Any, Any, Any]:
        step = self.newest.get("labels")
        if step is None:
            return None, None, None
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
        """Return the values of all workers, concatenated."""
        parts = []
        for tensor, worker in each_worker(self.base_trial, self._names(collection, step)[:1], step):
            value = value_of(tensor, step, ModeKeys.GLOBAL, worker)
            if value is not None and value.size and value.dtype.kind in "biuf":
                parts.append(np.atleast_1d(value).astype(np.float64))
        if not parts or any(part.shape[1:] != parts[0].shape[1:] for part in parts):
            return None
        found = np.concatenate(parts)
        return found if np.isfinite(found).all() else None
