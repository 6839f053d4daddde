"""Convert the labels and predictions of a step to two rows of class numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smdebug.numbers.conditions import is_numeric


class ClassesUnknown(Exception):
    """These values are not classes; the text is the reason."""


class Classes(NamedTuple):
    """The class number of each sample, and the predicted one."""

    labels: Any
    predictions: Any


def classes_of(labels: Any, predictions: Any, argmax: bool = False) -> Classes:
    """Return both as rows of whole numbers of the same length, or raise `ClassesUnknown`."""
    labels = label_row(labels)
    predicted = prediction_row(predictions, labels.size, argmax)
    if predicted.size != labels.size:
        raise ClassesUnknown(f"there are {labels.size} labels and {predicted.size} predictions")
    return Classes(labels, predicted)


def label_row(labels: Any) -> Any:
    """Return labels as whole numbers; one-hot rows become the index of the 1."""
    labels = _numbers(labels)
    if labels.ndim > 1 and labels.shape[-1] > 1 and _is_one_hot(labels):
        return labels.argmax(axis=-1).reshape(-1)
    return _whole(labels.reshape(-1), "labels")


def prediction_row(predictions: Any, size: int, argmax: bool) -> Any:
    """Return predictions as whole numbers: the class of the highest score, or a rounded probability."""
    predictions = _numbers(predictions)
    if not predictions.size:
        raise ClassesUnknown("the predictions are empty")
    if argmax or (predictions.ndim > 1 and predictions.size > size):
        if not predictions.ndim:
            raise ClassesUnknown("a single number has no argmax")
        if predictions.dtype.kind == "f" and np.isnan(predictions).any():
            raise ClassesUnknown("some of the predictions are NaN")
        return predictions.argmax(axis=-1).reshape(-1)
    row = predictions.reshape(-1)
    if row.dtype.kind == "f" and bool(((row >= 0) & (row <= 1)).all()):
        row = np.floor(row + 0.5)
    return _whole(row, "predictions")


def _numbers(values: Any) -> Any:
    values = np.asarray(values)
    if not is_numeric(values) or values.dtype.kind == "c":
        raise ClassesUnknown(f"values of type {values.dtype} are not classes")
    if values.dtype.kind not in "biuf" or values.dtype.itemsize < 4:
        values = values.astype(np.float64 if values.dtype.kind not in "biu" else np.int64)
    return values


def _whole(row: Any, what: str) -> Any:
    if row.dtype.kind != "f":
        return row.astype(np.int64)
    with np.errstate(invalid="ignore"):
        if not np.isfinite(row).all() or (row != np.floor(row)).any() or (abs(row) > 2**53).any():
            raise ClassesUnknown(f"the {what} are not whole numbers")
    return row.astype(np.int64)


def _is_one_hot(labels: Any) -> bool:
    return bool(((labels == 0) | (labels == 1)).all() and (labels.sum(axis=-1) == 1).all())
