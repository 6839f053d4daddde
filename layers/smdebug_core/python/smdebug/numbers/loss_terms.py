"""What a loss was computed from, by the predictions and labels that its criterion was given."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.batches import label_facts
from smdebug.numbers.statistics import is_numeric

Array = NDArray[Any]
CROSS_ENTROPY = "cross entropy"
BINARY = "binary cross entropy"
BINARY_WITH_LOGITS = "binary cross entropy with logits"
SQUARED, ABSOLUTE = "mean squared error", "mean absolute error"
HUBER, SMOOTH = "Huber", "smooth L1"
DIVERGENCE = "Kullback-Leibler divergence"
MAX_ROWS = 4096
"""Of more rows, only the first ones are examined."""
ENOUGH_ROWS = 2
"""One row may sum to 1 by chance."""

_NAMES = {
    # by the names of Optax, PyTorch, Keras, MXNet and scikit-learn, without underscores and endings
    **dict.fromkeys(("softmaxcrossentropy", "softmaxcrossentropywithintegerlabels"), CROSS_ENTROPY),
    **dict.fromkeys(("crossentropy", "nll", "softmaxce", "logloss"), CROSS_ENTROPY),
    **dict.fromkeys(("categoricalcrossentropy", "sparsecategoricalcrossentropy"), CROSS_ENTROPY),
    **dict.fromkeys(("sigmoidbinarycrossentropy", "bcewithlogits"), BINARY_WITH_LOGITS),
    **dict.fromkeys(("binarycrossentropywithlogits", "sigmoidbce"), BINARY_WITH_LOGITS),
    **dict.fromkeys(("binarycrossentropy", "bce"), BINARY),
    **dict.fromkeys(("mse", "l2", "squarederror", "meansquarederror"), SQUARED),
    **dict.fromkeys(("mae", "l1", "absoluteerror", "meanabsoluteerror"), ABSOLUTE),
    **dict.fromkeys(("huber", "smoothl1"), HUBER),
    **dict.fromkeys(("kldivergence", "kldiv", "kullbackleiblerdivergence"), DIVERGENCE),
}
_OF_NUMBERS = frozenset({SQUARED, ABSOLUTE, HUBER, SMOOTH})
"""Criteria of regressions, whose labels are not classes."""
_TOLERANCE = 1e-3


def criterion_name(criterion: str | Callable[..., Any] | None) -> str:
    """Return the name of a criterion in facts, from its own name or that of its function."""
    while isinstance(criterion, functools.partial):
        criterion = criterion.func
    if criterion is None:
        return ""
    name = criterion if isinstance(criterion, str) else getattr(criterion, "__name__", "")
    name = name or type(criterion).__name__
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    return _NAMES.get(letters) or _NAMES.get(letters.removesuffix("loss")) or name.replace("_", " ")


def loss_term(predictions: Array, labels: Array | None, criterion: str) -> dict[str, Any]:
    """Return what is known of a criterion that was given these predictions and labels."""
    of_classes = labels is not None and criterion not in _OF_NUMBERS
    return {
        "criterion": criterion,
        "given": _softmax_applied(predictions),
        "classes": int(predictions.shape[-1]) if predictions.ndim > 1 else 1,
        **(label_facts(labels) if of_classes and labels is not None else {}),
    }


def broadcast_shape(
    loss: float | None, predictions: Array, labels: Array | None, criterion: str
) -> list[int] | None:
    """Return [N, N] if the loss compares each of N predictions with every label; None if it does not.

    Shapes alone do not show it, as the loss may have reshaped them. Its value does.
    """
    if loss is None or labels is None or criterion not in (SQUARED, ABSOLUTE):
        return None
    rows = predictions.shape[0] if predictions.ndim else 0
    if rows < ENOUGH_ROWS or rows > MAX_ROWS or labels.shape == predictions.shape:
        return None
    if {predictions.shape, labels.shape} != {(rows,), (rows, 1)}:
        return None
    given, wanted = (np.asarray(a, np.float64).reshape(-1) for a in (predictions, labels))
    of = np.square if criterion == SQUARED else np.abs
    by_row = float(of(given - wanted).mean())
    of_pairs = float(of(given[:, None] - wanted[None, :]).mean())
    if abs(by_row - of_pairs) <= 2 * _TOLERANCE * of_pairs or not np.isfinite(loss):
        return None
    # Halves of squares are a squared error, too.
    is_of_pairs = any(abs(loss - s * of_pairs) <= _TOLERANCE * abs(loss) for s in (1.0, 0.5))
    return [rows, rows] if is_of_pairs else None


def _softmax_applied(predictions: Array) -> str:
    """Return `softmax` or `log-softmax` if each row of the predictions is one, as its sum shows."""
    if predictions.ndim < 2 or predictions.shape[-1] < 2 or not is_numeric(predictions):
        return ""
    if predictions.dtype.kind == "c":
        return ""
    rows = np.asarray(predictions, np.float64).reshape(-1, predictions.shape[-1])
    if len(rows) < ENOUGH_ROWS or not np.isfinite(rows).any():
        return ""
    with np.errstate(all="ignore"):
        if (rows >= 0).all() and np.allclose(rows.sum(axis=1), 1, atol=_TOLERANCE):
            return "softmax"
        if (rows <= 0).all() and np.allclose(np.exp(rows).sum(axis=1), 1, atol=_TOLERANCE):
            return "log-softmax"
    return ""
