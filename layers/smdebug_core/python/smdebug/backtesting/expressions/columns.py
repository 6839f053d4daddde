"""What a run has of a series, or of a statistic of a tensor, at its steps."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.runs.tensors import tensor_over_steps
from smdebug.runs.training_loss import has_series, loss_name, training_loss
from smdebug.trials import Trial

_LOSS = "loss"


class Values(NamedTuple):
    """Numbers at steps, in order; none if the run does not have them."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def none(cls) -> Values:
        return cls(np.empty(0, np.int64), np.empty(0))

    def encoded(self) -> list[str]:
        """Return them as text, for another process."""
        return [b64encode(part.tobytes()).decode() for part in self]

    @classmethod
    def decoded(cls, texts: Iterable[str]) -> Values:
        steps, values = map(b64decode, texts)
        return cls(np.frombuffer(steps, np.int64), np.frombuffer(values, np.float64))


def read_columns(trial: Trial, keys: Iterable[str]) -> Mapping[str, Values]:
    """Return the columns of these keys, which the grammar makes."""
    return {key: _read(trial, *key.split(":", 1)) for key in keys}


def _read(trial: Trial, kind: str, name: str) -> Values:
    return _series(trial, name) if kind == "series" else _statistic(trial, *name.split(":", 1))


def _series(trial: Trial, name: str) -> Values:
    """Return a scalar of the training; `loss` is the training's loss, whatever its name."""
    if not (has_series(trial, name) or trial.has_tensor(name)):
        name = loss_name(trial) if name == _LOSS else ""
    found = training_loss(trial, name, most=None) if name else None
    return (
        Values.none() if found is None else Values(found.steps.astype(np.int64), found.values.astype(float))
    )


def _statistic(trial: Trial, statistic: str, tensor: str) -> Values:
    if not (trial.has_tensor(tensor) or tensor in trial.observations.measured):
        return Values.none()
    points = [
        (at.step, math.nan if value is None else float(value))
        for at in tensor_over_steps(trial, tensor)
        if at.summary is not None
        for value in [at.summary.to_dict().get(statistic)]
    ]
    steps, values = zip(*points, strict=True) if points else ((), ())
    return Values(np.array(steps, np.int64), np.array(values, np.float64))
