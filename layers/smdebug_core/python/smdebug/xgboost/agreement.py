"""How far predictions agree with labels, and whether a feature is the label: plain functions over arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST_CLASSES = 50
LEAST_ROWS = 20


def agreement(predictions: Any, labels: Any) -> Mapping[str, Any]:
    """Return the skill of predictions, from 0 for chance to 1, and how many standard errors it is from 0.

    For two classes that is twice the area under the curve less one, for several the accuracy beyond that
    of the same classes in another order, else the correlation of ranks. Empty if the shapes do not fit.
    """
    predicted, labels = np.asarray(predictions, np.float64), np.asarray(labels, np.float64).ravel()
    rows = labels.size
    if rows < LEAST_ROWS or predicted.shape[:1] != (rows,) or not np.isfinite(predicted).all():
        return {}
    is_constant = bool((predicted == predicted[0]).all())
    if np.ptp(labels) == 0 or is_constant:
        return {"rows": rows, "constant": is_constant}
    if predicted.ndim == 2:
        skill, error = _accuracy(predicted.argmax(axis=1), labels)
    elif predicted.ndim == 1 and np.unique(labels).size == 2:
        skill, error = _separation(predicted, labels == labels.max())
    elif predicted.ndim == 1:
        skill, error = _correlation(_ranks(predicted), _ranks(labels)), 1 / math.sqrt(rows - 1)
    else:
        return {}
    return {"rows": rows, "constant": False, "skill": skill, "score": skill / error}


def explained_by(labels: Any, feature: Any) -> float | None:
    """Return the share of a feature's variance that the label explains: 1 if it reveals the label.

    A feature that is constant within one class, and has that value in no other, is as good as the label.
    None if too little of the feature is present.
    """
    feature, labels = np.asarray(feature, np.float64).ravel(), np.asarray(labels, np.float64)
    present = np.isfinite(feature)
    if labels.shape != feature.shape or present.sum() < max(LEAST_ROWS, 0.95 * feature.size):
        return None
    feature, labels = feature[present], labels[present]
    total = float(((feature - feature.mean()) ** 2).sum())
    classes = np.unique(labels)
    if not total or classes.size < 2:
        return None
    if classes.size > MOST_CLASSES:
        return _correlation(feature, labels) ** 2
    groups = [feature[labels == label] for label in classes]
    if len(groups) == 2 and _has_a_value_of_its_own(*groups):
        return 1.0
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    return 1 - within / total


def _has_a_value_of_its_own(first: Floats, second: Floats) -> bool:
    """Whether one class has a single value that the other, which varies, lies beyond altogether."""
    for constant, other in ((first, second), (second, first)):
        if constant.size >= LEAST_ROWS and np.ptp(constant) == 0:
            return bool((other > constant[0]).all() or (other < constant[0]).all())
    return False


def _separation(predicted: Floats, is_positive: NDArray[np.bool_]) -> tuple[float, float]:
    positive = int(is_positive.sum())
    negative = is_positive.size - positive
    ranks = _ranks(predicted)
    area = (float(ranks[is_positive].sum()) - positive * (positive - 1) / 2) / (positive * negative)
    error = math.sqrt((is_positive.size + 1) / (12 * positive * negative))
    return 2 * area - 1, 2 * error


def _accuracy(predicted: NDArray[Any], labels: Floats) -> tuple[float, float]:
    by_chance = sum(
        float((predicted == label).mean() * (labels == label).mean()) for label in np.unique(labels)
    )
    beyond = max(1 - by_chance, 1e-9)
    error = math.sqrt(max(by_chance * (1 - by_chance), 1e-9) / labels.size)
    return (float((predicted == labels).mean()) - by_chance) / beyond, error / beyond


def _correlation(first: Floats, second: Floats) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / size if size else 0.0


def _ranks(values: Floats) -> Floats:
    """The ranks of the values, from 0; equal values share their mean rank."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found: Floats = (ends - (counts + 1) / 2)[where.ravel()]
    return found
