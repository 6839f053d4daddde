"""Read the losses of a step: scalars, one for every worker that saved them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.rules.measurements import each_worker, reductions_of, single, value_of
from smdebug.rules.selection import TensorSelection

MODES = {mode.name: mode for mode in ModeKeys}


class Loss(NamedTuple):
    """One worker's loss; the value is None if the tensor is not a real scalar."""

    name: str
    worker: str
    value: float | None


def scalar(value: Any) -> float | None:
    """Return the value as a float; None if it is not a single real number."""
    if value is None or (value.dtype.kind in "cSUOV" and "float" not in value.dtype.name):
        return None
    number = single(value)
    return None if number is None else float(number)


def loss_of(tensor: Any, step: int, worker: str, mode: ModeKeys = ModeKeys.GLOBAL) -> float | None:
    """Return the worker's loss at a step, or its saved mean if the loss itself was not saved."""
    value = value_of(tensor, step, mode, worker)
    if value is not None:
        return scalar(value)
    saved = single(reductions_of(tensor, step, mode, worker).get(("mean", False)))
    return None if saved is None else float(saved)


def losses_at(trial: Any, names: Iterable[str], step: int) -> Iterator[Loss]:
    """Yield the losses that all workers saved at a global step."""
    for tensor, worker in each_worker(trial, names, step):
        yield Loss(tensor.name, worker, loss_of(tensor, step, worker))


def mean_loss(losses: Iterable[Loss]) -> float | None:
    """Return the mean over losses and workers; None without losses, NaN if a loss is NaN."""
    values = [loss.value for loss in losses if loss.value is not None]
    return sum(values) / len(values) if values else None


def loss_selection(tensor_regex: Any) -> TensorSelection:
    """Return the selection of matching tensors; without a pattern, of the collection losses."""
    chosen = TensorSelection(None, tensor_regex)
    return chosen if chosen else TensorSelection(["losses"])


# Metrics for which larger is better.
_LARGER_IS_BETTER = frozenset(("auc", "aucpr", "map", "ndcg", "r2", "pre", "precision", "recall", "f1"))
_VALIDATION = ("validation", "valid", "val", "eval", "test")


def metric_pairs(losses: Iterable[Loss]) -> tuple[float, float] | None:
    """Return the means of XGBoost's `train-rmse` and `validation-rmse` of a step; None without a pair."""
    train: dict[tuple[str, str], float] = {}
    validation: dict[tuple[str, str], float] = {}
    for loss in losses:
        kind, dash, metric = loss.name.rpartition("/")[2].partition("-")
        if loss.value is None or not dash or _is_larger_better(metric):
            continue
        if kind == "train":
            train[metric, loss.worker] = loss.value
        elif kind in _VALIDATION:
            validation[metric, loss.worker] = loss.value
    common = sorted(train.keys() & validation.keys())
    if not common:
        return None
    return (
        sum(train[key] for key in common) / len(common),
        sum(validation[key] for key in common) / len(common),
    )


def is_gain(name: str) -> bool:
    """Return whether larger is better for this metric of XGBoost, such as `validation-auc`."""
    kind, dash, metric = name.rpartition("/")[2].partition("-")
    return bool(dash) and kind in ("train", *_VALIDATION) and _is_larger_better(metric)


def _is_larger_better(metric: str) -> bool:
    """Return whether larger is better: true of `ndcg@5-`, `f1_macro` and `balanced_accuracy`."""
    name = metric.partition("@")[0].rstrip("-")
    return name.partition("_")[0] in _LARGER_IS_BETTER or name.endswith("accuracy")


def losses_by_mode(trial: Any, selection: TensorSelection, step: int) -> dict[ModeKeys, float]:
    """Return the mean training or validation loss, or both if one step has both, as with XGBoost."""
    mode = trial.mode(step)
    if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
        mean = mean_loss(losses_at(trial, selection.names(trial, step), step))
        return {} if mean is None else {mode: mean}
    names = set(selection.names(trial, step))
    if not selection.tensor_regex:
        names.update(TensorSelection(["metrics"]).names(trial, step))
    pair = metric_pairs(losses_at(trial, sorted(names), step))
    return {} if pair is None else dict(zip((ModeKeys.TRAIN, ModeKeys.EVAL), pair, strict=True))


def why_no_mode(trial: Any, selection: TensorSelection, step: int) -> dict[str, str]:
    """Return the reason to skip the losses of a step that is neither training nor validation."""
    if trial.mode(step) in (ModeKeys.TRAIN, ModeKeys.EVAL):
        return {}
    reason = "its step has neither mode TRAIN nor EVAL"
    return dict.fromkeys(selection.names(trial, step), reason)


def parse_mode(value: Any) -> ModeKeys | None:
    """Return the mode of that name; None if no value is given."""
    if isinstance(value, ModeKeys):
        return value
    if value in (None, "", "None"):
        return None
    name = str(value).strip().upper().removeprefix("MODES.").removeprefix("MODEKEYS.")
    if name not in MODES:
        raise SMDebugValueError(f"mode must be one of {', '.join(MODES)}, not {value!r}")
    return MODES[name]
