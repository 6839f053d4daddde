"""Facts about a batch besides the statistics of its values: equal rows, and the balance of its labels."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.statistics import is_numeric

Array = NDArray[Any]
MAX_ROWS = 1 << 16
"""Rows of larger batches are not compared."""
MAX_CLASSES = 1 << 16
MOST_DIGESTS = 32
_MIXING = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFT = np.uint64(32)


def batch_facts(inputs: Sequence[Array]) -> dict[str, Any]:
    """Return the shapes of a batch's inputs, and how many rows of the first are distinct."""
    given = next((array for array in inputs if array.ndim), None)
    if given is None:
        return {}
    return {
        "shapes": [list(array.shape) for array in inputs[:8]],
        "distinct_rows": distinct_rows(given),
    }


def distinct_rows(batch: Array) -> int | None:
    """Return how many rows of the batch are distinct; None if it has too few or too many to compare."""
    if not is_numeric(batch) or batch.ndim == 0 or not 1 < len(batch) <= MAX_ROWS or not batch.size:
        return None
    rows = np.ascontiguousarray(batch).reshape(len(batch), -1)
    return len({row.tobytes() for row in rows})


def row_digests(projections: NDArray[np.float64]) -> str | None:
    """Return a digest of 32 bits for each row, as base64, from one number for each that its values make.

    Of many rows the smallest digests are kept, so that a row that is kept here is mostly kept elsewhere, too.
    """
    words = np.ascontiguousarray(projections[np.isfinite(projections)]).view(np.uint64)
    if not words.size:
        return None
    for factor in _MIXING:
        words = (words ^ (words >> _SHIFT)) * factor
    kept = np.unique((words >> _SHIFT).astype("<u4"))[:MOST_DIGESTS]
    return b64encode(kept.tobytes()).decode()


def digests_of(text: Any) -> list[int]:
    """Return the digests that `row_digests` has written, the smallest first; none of damaged text."""
    try:
        return [int(digest) for digest in np.frombuffer(b64decode(text), "<u4")]
    except (ValueError, TypeError):
        return []


def label_facts(labels: Array) -> Mapping[str, Any]:
    """Return the balance of a batch's labels: whole numbers, one per row, or rows with a single 1.

    Other targets, as those of a regression, have none.
    """
    classes = classes_of(labels)
    return {} if classes is None else class_balance(classes, np.bincount(classes))


def class_balance(classes: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[str, Any]:
    """Return the balance of class labels, of which there is at least one, and their counts."""
    return {
        "targets": int(classes.size),
        "classes_seen": int(np.count_nonzero(counts)),
        "largest_class": int(counts.argmax()),
        "largest_share": float(counts.max() / classes.size),
    }


def classes_of(labels: Array) -> NDArray[np.int64] | None:
    """Return the class of each row: of whole numbers, or of rows with a single 1; None of other targets."""
    if labels.dtype.kind not in "biuf" or not labels.size:
        return None
    if labels.ndim > 1 and labels.shape[-1] > 1:
        rows = labels.reshape(-1, labels.shape[-1])
        is_one_hot = bool(((rows == 0) | (rows == 1)).all() and (rows.sum(axis=1) == 1).all())
        return rows.argmax(axis=1) if is_one_hot else None
    values = labels.reshape(-1)
    if labels.dtype.kind == "f" and not (np.isfinite(values).all() and (values % 1 == 0).all()):
        return None
    if values.min() < 0 or values.max() > MAX_CLASSES:
        return None
    return values.astype(np.int64)
