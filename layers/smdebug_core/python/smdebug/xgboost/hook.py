"""The hook for XGBoost: a callback of `xgboost.train`, `xgboost.cv` and the estimators.

    hook = smd.Hook("s3://bucket/run", include_collections=["feature_importance"], train_data=dtrain)
    xgboost.train(params, dtrain, evals=[(dtest, "test")], callbacks=[hook])

A boosting round is a step. Values are computed only for rounds at which they are saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from smdebug.config.json_config import create_hook_from_json_config
from smdebug.config.keys import CollectionKeys
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import SMDebugTypeError, TrainingStopped
from smdebug.logger import get_logger
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.hooks.error_agent import ErrorHandlingAgent
from smdebug.saving.hooks.framework import require
from smdebug.saving.hooks.hook import FrameworkHook
from smdebug.saving.hooks.options import HookOptions, takes
from smdebug.saving.requests.control import Agree
from smdebug.xgboost.collection import CollectionManager

require("XGBoost", "xgboost", "xgboost")

import xgboost  # noqa: E402
from xgboost import collective  # noqa: E402
from xgboost.callback import TrainingCallback  # noqa: E402

from smdebug.xgboost.data import get_dmatrix, parse_tree_model  # noqa: E402
from smdebug.xgboost.observer import IMPORTANCES, BoosterObserver, importance  # noqa: E402

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.METRICS]
DEFAULT_SAVE_INTERVAL = 10
_NEEDS = {
    CollectionKeys.HYPERPARAMETERS: "hyperparameters",
    CollectionKeys.PREDICTIONS: "validation_data",
    CollectionKeys.LABELS: "validation_data",
    CollectionKeys.AVERAGE_SHAP: "train_data",
    CollectionKeys.FULL_SHAP: "train_data",
}


@dataclass(frozen=True)
class XGBoostOptions(HookOptions):
    """The further options of the hook for XGBoost: data of which predictions and SHAP values are computed."""

    hyperparameters: Mapping[str, Any] | None = None
    train_data: Any = None
    validation_data: Any = None

    def __post_init__(self) -> None:
        is_chosen = self.save_config is not None
        super().__post_init__()
        if not is_chosen:
            default = SaveConfig(save_interval=DEFAULT_SAVE_INTERVAL)
            object.__setattr__(self, "save_config", default)


class XGBoostAdapter(FrameworkAdapter):
    """Numpy arrays, and the ranks of XGBoost's collective."""

    def rank_and_size(self) -> tuple[int, int]:
        return int(collective.get_rank()), int(collective.get_world_size())


# After an error in a hook that was not configured, the training continues without it.
_goes_on = ErrorHandlingAgent.get_error_handling_agent().catch_smdebug_errors


class Hook(FrameworkHook, TrainingCallback):  # type: ignore[misc]
    """Saves metrics, feature importance, SHAP values, trees and predictions while XGBoost trains.

        hook = smd.Hook(out_dir, include_collections=["average_shap", "trees"], train_data=dtrain)
        xgboost.train(params, dtrain, evals=[(dtest, "test")], callbacks=[hook])

    Given only a path, the metrics of every round are series, and at chosen rounds importance,
    predictions and labels are measured; with any option metrics are saved every tenth round. `train_data` and
    `validation_data` are a `DMatrix`, or `(path, "csv" | "libsvm")`. When a stop is requested, the current
    round is the last, and `xgboost.train` returns the model; `hook.stopped` has the reason.
    """

    adapter = XGBoostAdapter()
    if_no_step = "Pass the hook to the training: xgboost.train(…, callbacks=[hook])"
    takes_over = True
    observes = True
    saved_by_default = DEFAULT_INCLUDE_COLLECTIONS

    @takes(XGBoostOptions)
    def __init__(self, options: XGBoostOptions):
        if options.reduction_config is not None:
            get_logger().warning("reduction_config is ignored: XGBoost's tensors are saved whole")
            options = replace(options, reduction_config=None)
        self.set_up(options)
        self.hyperparameters = options.hyperparameters
        self.train_data = _matrix(options.train_data, "train_data")
        self.validation_data = _matrix(options.validation_data, "validation_data")
        self.evaluated: dict[str, str] = {}  # which data of `evals` is of training or validation
        self.stopped: TrainingStopped | None = None
        self._observer: BoosterObserver | None = None
        self._round: tuple[int, Any] | None = None  # the current round, and its metrics so far

    def make_collections(self) -> CollectionManager:
        return CollectionManager()

    @classmethod
    def create_from_json_file(
        cls, json_file_path: str | None = None, *, beside: Mapping[str, Any] | None = None
    ) -> Any:
        """Make a hook from a JSON file; by default it saves every tenth round."""
        made = partial(cls, **(beside or {}))
        return create_hook_from_json_config(made, json_file_path, {"save_interval": DEFAULT_SAVE_INTERVAL})

    # Estimators are copied for cross-validation, and pickled with their callbacks

    def __deepcopy__(self, memo: Any) -> Any:
        self.warn_once("Copies of an estimator are not watched: they are not part of the run")
        return Unwatched()

    def __copy__(self) -> Any:
        return Unwatched()

    def __reduce__(self) -> Any:
        return Unwatched, ()

    # What XGBoost calls

    @_goes_on(default_return_val=False)
    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Begin a step; return True, which ends the training, if a stop is requested."""
        try:
            self.begin_step()
        except TrainingStopped as stopped:
            self.stopped = stopped
            return True
        if self._observer is None and self.observations is not None:
            self._observer = BoosterObserver(self, self.observations)
        self._round = (epoch, evals_log)
        return False

    @_goes_on(default_return_val=False)
    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Save what is wanted of the round, which has ended."""
        self._round = None
        observer = self._observer
        if observer is not None:
            self.guarded(lambda: observer.end_round(model, _metrics(evals_log)))
        elif self.due:
            self._warn_of_missing_data()
            computed = self._of_model(model) if isinstance(model, xgboost.Booster) else ()
            for tensors in (_metrics(evals_log), self._user_data(), *computed):
                self.guarded(partial(self._record, tensors))
        self.end_step()
        return False

    @_goes_on(default_return_val=lambda hook, model: model)
    def after_training(self, model: Any) -> Any:
        """Save the last round, if another callback ended it before this one was called."""
        if self._round is not None:
            epoch, evals_log = self._round
            self.after_iteration(model, epoch, evals_log)
        self.flush(self.write_patience)
        return model

    # What there is to save

    def _record(self, tensors: Iterable[tuple[str, Any]]) -> None:
        for name, value in tensors:
            self.record(name, value)

    def _user_data(self) -> Iterator[tuple[str, Any]]:
        for name, value in (self.hyperparameters or {}).items():
            yield f"hyperparameters/{name}", value
        if self.validation_data is not None and self._is_due(CollectionKeys.LABELS, "labels"):
            yield "labels", self.validation_data.get_label()

    def _of_model(self, model: Any) -> Iterator[Iterable[tuple[str, Any]]]:
        """Compute what is wanted of the model."""
        if self.validation_data is not None and self._is_due("predictions", "predictions"):
            yield self._unless_refused("predictions", self._predictions(model))
        for kind in IMPORTANCES:
            if self._is_due("feature_importance", f"feature_importance/{kind}/f0"):
                yield _importance(model, kind)
        if self.train_data is not None:
            average = self._is_due("average_shap", "average_shap/f0")
            full = self._is_due("full_shap", "full_shap/f0")
            if average or full:
                yield self._unless_refused("SHAP values", self._shap(model, average, full))
        if self._is_due("trees", "trees/Node"):
            yield self._unless_refused("trees", _trees(model))

    def _predictions(self, model: Any) -> Iterator[tuple[str, Any]]:
        yield "predictions", model.predict(self.validation_data)

    def _shap(self, model: Any, average: bool, full: bool) -> Iterator[tuple[str, Any]]:
        shap = model.predict(self.train_data, pred_contribs=True)
        features = self.train_data.feature_names or [f"f{i}" for i in range(shap.shape[-1] - 1)]
        for number, feature in enumerate([*features, "bias"]):
            if average:
                mean = shap[..., number].mean(axis=0)
                yield f"average_shap/{feature}", np.atleast_1d(mean)
            if full:
                yield f"full_shap/{feature}", shap

    def _unless_refused(self, subject: str, tensors: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """Yield the tensors; warn if this booster has none, as a linear model has no trees."""
        try:
            yield from tensors
        except (ValueError, xgboost.core.XGBoostError) as error:
            reason = str(error).partition("\n")[0]
            self.warn_once(f"{subject} cannot be saved: XGBoost reports: {reason}", subject)

    def _is_due(self, collection: str, example: str) -> bool:
        return self.should_save_tensor_or_collection(example, collection)

    def _warn_of_missing_data(self) -> None:
        for collection in self.collections_due():
            data = _NEEDS.get(collection.name)
            if data is not None and getattr(self, data) is None:
                self.warn_once(f"{collection.name} cannot be saved: the hook needs {data}")

    # Several processes

    def agreement(self) -> Agree | None:
        """Let all workers stop after the same round: XGBoost runs their callbacks round by round."""
        return _as_rank_zero_decides if collective.get_world_size() > 1 else None


class Unwatched(TrainingCallback):  # type: ignore[misc]
    """Replaces a hook in the copy of an estimator: a callback that does nothing."""


def _as_rank_zero_decides(last: int | None) -> int | None:
    agreed: int | None = collective.broadcast(last, 0)
    return agreed


def _metrics(evals_log: Mapping[str, Mapping[str, list[Any]]]) -> Iterator[tuple[str, Any]]:
    for data, metrics in evals_log.items():
        for metric, values in metrics.items():
            if isinstance(values[-1], tuple):  # of xgboost.cv: over the folds
                mean, deviation = values[-1]
                yield f"{data}-{metric}", mean
                yield f"{data}-{metric}-std", deviation
            else:
                yield f"{data}-{metric}", values[-1]


def _importance(model: Any, kind: str) -> Iterator[tuple[str, float]]:
    """Yield each feature's share of the sum; features that no tree uses have none."""
    for feature, share in importance(model, kind).items():
        yield f"feature_importance/{kind}/{feature}", share


def _trees(model: Any) -> Iterator[tuple[str, Any]]:
    for column, values in parse_tree_model(model, model.num_boosted_rounds() - 1).items():
        yield f"trees/{column}", values


def _matrix(data: Any, name: str) -> Any:
    if data is None or isinstance(data, xgboost.DMatrix):
        return data
    if isinstance(data, list | tuple) and len(data) == 2:
        path, content_type = data
        return get_dmatrix(str(path), str(content_type))
    raise SMDebugTypeError(f'{name} is a DMatrix, or (path, "csv" or "libsvm"), not {data!r}')
