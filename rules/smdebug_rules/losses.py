"""What a loss is at a step: a scalar, by every worker that saved it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.rules.measurements import each_worker, reductions_of, single, value_of
from smdebug.rules.selection import TensorSelection

MODES = {mode.name: mode for mode in ModeKeys}


class Loss(NamedTuple):
    """One worker's loss of that name; None where the tensor is no real scalar."""

    name: str
    worker: str
    value: float | None


def scalar(value: Any) -> float | None:
    """The value as a float; None where it is no single real number."""
    if value is None or (value.dtype.kind in "cSUOV" and "float" not in value.dtype.name):
        return None
    found = single(value)
    return None if found is None else float(found)


def loss_of(tensor: Any, step: int, worker: str, mode: ModeKeys = ModeKeys.GLOBAL) -> float | None:
    """The worker's loss at a step, or its saved mean where the loss itself was not saved."""
    value = value_of(tensor, step, mode, worker)
    if value is not None:
        return scalar(value)
    saved = single(reductions_of(tensor, step, mode, worker).get(("mean", False)))
    return None if saved is None else float(saved)


def losses_at(trial: Any, names: Iterable[str], step: int) -> Iterator[Loss]:
    """The losses that were saved at a global step, by all workers."""
    for tensor, worker in each_worker(trial, names, step):
        yield Loss(tensor.name, worker, loss_of(tensor, step, worker))


def mean_loss(losses: Iterable[Loss]) -> float | None:
    """The mean over losses and workers; None where there is none, NaN where one is NaN."""
    values = [loss.value for loss in losses if loss.value is not None]
    return sum(values) / len(values) if values else None


def loss_selection(tensor_regex: Any) -> TensorSelection:
    """The tensors that match, or without a pattern, the collection losses."""
    chosen = TensorSelection(None, tensor_regex)
    return chosen if chosen else TensorSelection(["losses"])


# Metrics that are the better the larger they are tell nothing by rising.
_THE_MORE_THE_BETTER = frozenset(
    ("auc", "aucpr", "map", "ndcg", "r2", "pre", "precision", "recall", "f1")
)
_VALIDATION = ("validation", "valid", "val", "eval", "test")


def metric_pairs(losses: Iterable[Loss]) -> tuple[float, float] | None:
    """XGBoost's `train-rmse` and `validation-rmse` of one step: their means, None without such a pair."""
    train: dict[tuple[str, str], float] = {}
    validation: dict[tuple[str, str], float] = {}
    for loss in losses:
        kind, dash, metric = loss.name.rpartition("/")[2].partition("-")
        if loss.value is None or not dash or _rises(metric):
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
    """Is this a metric of XGBoost that is the better the larger it is, such as `validation-auc`?"""
    kind, dash, metric = name.rpartition("/")[2].partition("-")
    return bool(dash) and kind in ("train", *_VALIDATION) and _rises(metric)


def _rises(metric: str) -> bool:
    """Is it the better the larger it is? `ndcg@5-`, `f1_macro` and `balanced_accuracy` are."""
    name = metric.partition("@")[0].rstrip("-")
    return name.partition("_")[0] in _THE_MORE_THE_BETTER or name.endswith("accuracy")


def losses_by_mode(trial: Any, selection: TensorSelection, step: int) -> dict[ModeKeys, float]:
    """The mean loss of training, of validation, or of both where one step has both, as with XGBoost."""
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
    """The losses of a step that is neither one of training nor of validation, and so tells neither loss."""
    if trial.mode(step) in (ModeKeys.TRAIN, ModeKeys.EVAL):
        return {}
    reason = "its step is of neither mode, TRAIN or EVAL"
    return dict.fromkeys(selection.names(trial, step), reason)


def mode_meant(told: Any) -> ModeKeys | None:
    """The mode of that name; None where none is given."""
    if isinstance(told, ModeKeys):
        return told
    if told in (None, "", "None"):
        return None
    name = str(told).strip().upper().removeprefix("MODES.").removeprefix("MODEKEYS.")
    if name not in MODES:
        raise SMDebugValueError(f"mode must be one of {', '.join(MODES)}, not {told!r}")
    return MODES[name]
