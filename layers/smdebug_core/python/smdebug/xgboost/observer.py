"""What the default plan observes of an XGBoost training: metrics of every round, and at rounds that are saved
feature importance, predictions, labels, and facts about the parameters and the data.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import xgboost

from smdebug.files.names import FIRST_LEARNING_RATE
from smdebug.numbers.batches import distinct_rows, label_facts
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.xgboost.agreement import agreement, explained_by

IMPORTANCES = ("weight", "gain", "cover", "total_gain", "total_cover")
IMPORTANCE = "importance"
"""The kind of the rows `feature_importance/gain` and so on: the shares of all features."""
MAX_PREDICTED = 100_000
"""Predictions of data with more rows are not measured."""
MAX_CELLS = 10_000_000
"""Rows of data with more values are not compared."""
MOST_FEATURES = 10
MOST_GAIN = 0.8
"""A feature with this share of all gain is compared with the label."""


class ObservedHook(Protocol):
    """What observing needs from the hook."""

    validation_data: Any
    train_data: Any
    evaluated: Mapping[str, str]

    @property
    def due(self) -> int: ...
    def record(self, tensor_name: str, tensor_value: Any) -> None: ...
    def carry(self, name: str, value: Any) -> None: ...
    def observe_as(self, tensor_name: str, kind: str) -> None: ...
    def guarded(self, capture: Callable[[], object]) -> None: ...
    def warn_once(self, message: str, kind: str = "") -> None: ...


class BoosterObserver:
    """Observes one hook's training."""

    def __init__(self, hook: ObservedHook, observations: StepObservations):
        self._hook = hook
        self._observations = observations
        self._facts_of: Any = None  # the data whose facts were noted
        self._explained: dict[str, float | None] = {}  # how far the label explains a feature

    def end_round(self, model: Any, metrics: Iterable[tuple[str, Any]]) -> None:
        """Carry the metrics of a round, and at one that is saved measure what the booster is."""
        for name, value in metrics:
            if self._hook.due:
                self._hook.record(name, value)
            else:
                self._hook.carry(name, value)
        if not self._hook.due:
            return
        self._observations.note(training=True)
        self._hook.guarded(self._observe_data)
        if isinstance(model, xgboost.Booster):  # and not the folds of `xgboost.cv`
            self._hook.guarded(lambda: self._observe_booster(model))

    def _observe_booster(self, model: Any) -> None:
        settings = json.loads(model.save_config())["learner"]
        self._observations.note_lasting(
            arguments=arguments_of(settings),
            evaluated=dict(self._hook.evaluated),
            stops_early="best_iteration" in model.attributes(),
        )
        for name, value in _settings(settings["gradient_booster"]):
            if name == "learning_rate":
                self._hook.carry(FIRST_LEARNING_RATE, float(value))
        top = self._observe_importance(model)
        if top is not None:
            self._hook.guarded(lambda: self._compare_with_label(model, *top))
        data = self._data()
        if data is None or data.num_row() > MAX_PREDICTED:
            return
        try:
            predictions = model.predict(data)
        except (ValueError, xgboost.core.XGBoostError) as error:
            reason = str(error).partition("\n")[0]
            self._hook.warn_once(f"predictions are not measured: XGBoost reports: {reason}")
            return
        self._hook.record("predictions", predictions)
        of = "training" if data is self._hook.train_data else "validation"
        found = agreement(predictions, data.get_label())
        if found:
            self._observations.note(predicted={"of": of, **found})

    def _compare_with_label(self, model: Any, feature: str, share: float) -> None:
        """Note how far the label explains the feature that has most of the gain."""
        data = self._hook.train_data
        if share < MOST_GAIN or data is None or data.num_row() * data.num_col() > MAX_CELLS:
            return
        if feature not in self._explained:
            names = model.feature_names or [f"f{i}" for i in range(model.num_features())]
            column = data.get_data()[:, [names.index(feature)]]
            values = np.full(data.num_row(), np.nan)
            rows = np.repeat(np.arange(data.num_row()), np.diff(column.indptr))
            values[rows] = column.data
            self._explained[feature] = explained_by(data.get_label(), values)
        explained = self._explained[feature]
        if explained is not None:
            self._observations.note(top_feature={"name": feature, "share": share, "explained": explained})

    def _observe_importance(self, model: Any) -> tuple[str, float] | None:
        """Measure the importance of features, and return the one with the largest share of all gain."""
        top: dict[str, list[list[Any]]] = {}
        for kind in IMPORTANCES:
            shares = importance(model, kind)
            if not shares:
                continue
            name = f"feature_importance/{kind}"
            features = model.feature_names or [f"f{i}" for i in range(model.num_features())]
            values = np.array([shares.get(feature, 0.0) for feature in features], np.float32)
            self._hook.observe_as(name, IMPORTANCE)
            self._hook.record(name, values)
            ordered = sorted(shares.items(), key=lambda share: -share[1])[:MOST_FEATURES]
            top[kind] = [list(share) for share in ordered]
        self._observations.note(top_features=top)
        largest = top.get("total_gain")
        return (str(largest[0][0]), float(largest[0][1])) if largest else None

    def _observe_data(self) -> None:
        data = self._data()
        if data is not None:
            self._hook.record("labels", data.get_label())
        train_data = self._hook.train_data
        if train_data is None or train_data is self._facts_of:
            return
        self._facts_of = train_data
        self._explained.clear()
        self._observations.note_lasting(data=data_facts(train_data))

    def _data(self) -> Any:
        """Return the data whose labels and predictions are measured: the validation's, or the training's."""
        hook = self._hook
        return hook.train_data if hook.validation_data is None else hook.validation_data


def data_facts(data: Any) -> dict[str, Any]:
    """Return the size of the data, how much of it is missing, equal rows, and the balance of its labels."""
    rows, columns = int(data.num_row()), int(data.num_col())
    cells = rows * columns
    facts: dict[str, Any] = {
        "shapes": [[rows, columns]],
        "missing": 1 - data.num_nonmissing() / cells if cells else 0.0,
        "labels": dict(label_facts(np.asarray(data.get_label()))),
        "weighted": bool(np.asarray(data.get_weight()).size),
    }
    if cells <= MAX_CELLS:
        sparse = data.get_data()
        if sparse.nnz == cells:
            facts["distinct_rows"] = distinct_rows(sparse.toarray())
        else:
            facts["distinct_rows"] = _distinct_sparse(sparse)
    return facts


def arguments_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a booster as XGBoost has completed them."""
    plain = dict(_settings(settings))
    plain["objective"] = settings["objective"]["name"]
    plain.pop("base_score", None)  # estimated from the labels
    plain.pop("num_trees", None)
    return plain


def importance(model: Any, kind: str) -> dict[str, float]:
    """Return each feature's share of the sum; none of features that no tree uses, or of a linear model."""
    try:
        scores = model.get_score(importance_type=kind)
    except (ValueError, xgboost.core.XGBoostError):  # a linear model has weights alone
        return {}
    sums = {feature: float(np.sum(score)) for feature, score in scores.items()}
    total = sum(sums.values())
    return {feature: score / total if total else 0.0 for feature, score in sums.items()}


def _settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each parameter, however nested, as a number if it is one."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        elif isinstance(value, str) and name != "name":
            yield name, _number(value)


def _number(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else round(number, 9)


def _distinct_sparse(rows: Any) -> int | None:
    if not 1 < rows.shape[0] <= 1 << 16:
        return None
    parts = itertools.pairwise(rows.indptr)
    return len({rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in parts})
