"""Facts of the targets of a loss: which classes they have, or how large and how spread they are.

They suffice to compute what the best constant prediction would cost, over many batches together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.batches import class_balance

MAX_VALUES = 1 << 16
"""Of more targets, rows at even distances are described."""
MAX_COUNTED = 128
"""Counts are listed for batches with at most this many different classes."""
MAX_COLUMNS = 64
"""Means and variances are listed for targets with at most this many columns."""
MAX_COMPARED = 1 << 13
"""Of more values, rows at even distances say what a constant prediction costs."""
_DIGITS = 6


def class_facts(targets: NDArray[np.int64], ignored: int | None = None) -> dict[str, Any]:
    """Return the balance of class labels, one per row, without those that the criterion ignores.

    `ignored_class` is the class that it ignores, where one may be meant.
    """
    given = targets.reshape(-1)
    kept = given[given >= 0]
    if ignored is not None and ignored >= 0:
        kept = kept[kept != ignored]
    share = 1 - kept.size / given.size if given.size else 0.0
    facts: dict[str, Any] = {"ignored": round(share, _DIGITS)}
    if ignored is not None and ignored >= 0:
        facts["ignored_class"] = ignored
    if not kept.size:
        return facts
    counts = np.bincount(kept)
    seen = np.flatnonzero(counts)
    facts |= class_balance(kept, counts)
    if seen.size <= MAX_COUNTED:
        facts["counts"] = [[int(known), int(counts[known])] for known in seen]
    if kept.size > 1:
        facts["changes"] = _share(kept[1:] != kept[:-1])
    return facts


def some_rows(values: Any) -> Any:
    """Return rows at even distances of an array or a tensor with more than `MAX_VALUES`, else all."""
    every = -(-math.prod(values.shape) // MAX_VALUES)
    return values[::every] if every > 1 else values


def number_facts(targets: NDArray[np.floating[Any]]) -> dict[str, Any]:
    """Return the range of targets that are numbers, with the mean and variance of each column."""
    if not targets.size:
        return {}
    rows = targets.reshape(len(targets), -1) if targets.ndim else targets.reshape(1, 1)
    rows = rows.astype(np.float64)
    count, columns = rows.shape
    facts: dict[str, Any] = {"target_rows": count, "columns": columns}
    lowest, highest = float(rows.min()), float(rows.max())
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        return facts
    facts["lowest"], facts["highest"] = lowest, highest
    if columns <= MAX_COLUMNS:
        means = rows.sum(0) / count
        apart = rows - means
        facts["means"] = means.tolist()
        facts["variances"] = ((apart * apart).sum(0) / count).tolist()
    if columns == 1 and count > 1:
        before, after = rows[:-1, 0], rows[1:, 0]
        facts["changes"] = _share(after != before)
        facts["ascending"] = _share(after >= before)
    return facts


def weight_facts(weights: NDArray[Any], targets: NDArray[Any]) -> dict[str, Any]:
    """Return the weights of positives beside the counts of positives and of all labels that each is for.

    Nothing of targets that are not 0 or 1, or if it is not known which of them a weight is for.
    """
    each = weights.reshape(-1)
    is_of_columns = weights.ndim == 1 and targets.ndim > 1 and targets.shape[-1] == each.size
    if each.size != 1 and not is_of_columns:
        return {}
    positive = targets == 1
    if not targets.size or not (positive | (targets == 0)).all():
        return {}
    counts = positive.reshape(-1, each.size).sum(0) if each.size > 1 else [np.count_nonzero(positive)]
    return {
        "weights": [float(weight) for weight in each],
        "positives": [int(count) for count in counts],
        "labels": targets.size // each.size,
    }


def constant_cost(targets: NDArray[np.floating[Any]], knee: float = 0.0, scale: float = 1.0) -> float | None:
    """Return the mean error of always predicting the same in each column, as absolute errors count.

    An error below `knee` counts as half its square over the knee, and all are multiplied with `scale`. The
    constant is the median of the column, or its mean where that costs less. None without finite targets.
    """
    if not targets.size:
        return None
    rows = targets.reshape(len(targets), -1) if targets.ndim else targets.reshape(1, 1)
    rows = rows[:: max(1, rows.size // MAX_COMPARED)].astype(np.float64)
    if not np.isfinite(rows).all():
        return None
    constants = (np.median(rows, 0), rows.mean(0))
    costs = [_absolute(rows - constant, knee).mean(0) for constant in constants]
    return float(np.minimum(*costs).mean() * scale)


def error_between(
    predictions: NDArray[Any], targets: NDArray[Any], knee: float | None, scale: float = 1.0
) -> float | None:
    """Return the mean squared error, or the absolute one with this knee; None if it is not finite."""
    apart = predictions.astype(np.float64).reshape(-1) - targets.reshape(-1)
    errors = apart * apart if knee is None else _absolute(apart, knee) * scale
    mean = float(errors.mean()) if errors.size else math.nan
    return mean if math.isfinite(mean) else None


def _absolute(apart: NDArray[np.float64], knee: float) -> NDArray[np.float64]:
    apart = np.abs(apart)
    return np.where(apart < knee, apart * apart / (2 * knee), apart - knee / 2) if knee else apart


def _share(which: NDArray[np.bool_]) -> float:
    return round(np.count_nonzero(which) / which.size, _DIGITS)
