"""Tensors whose variance is too large or too small."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import WorkerStatistics, measure, tensor_label
from smdebug.rules.parameters import is_given, number
from smdebug.rules.selection import TensorSelection


class TensorVariance(TensorRule):
    """Fires when the variance of a selected tensor is above `max_threshold` or below `min_threshold`.

    The population variance is used, as in numpy.
    """

    advice: ClassVar = {
        "": (
            "Initialise each layer by its own number of inputs.",
            "Add batch or layer normalisation between layers whose variances differ.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        max_threshold: Any = None,
        min_threshold: Any = None,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = TensorSelection(collection_names, tensor_regex)
        if not self.selection:
            raise SMDebugValueError("TensorVariance needs collection_names or tensor_regex")
        self.most = _limit("max_threshold", max_threshold)
        self.least = _limit("min_threshold", min_threshold)
        if self.most is None and self.least is None:
            raise SMDebugValueError("TensorVariance needs max_threshold or min_threshold")
        if self.most is not None and self.least is not None and self.least > self.most:
            raise SMDebugValueError(f"min_threshold ({self.least:g}) is above max_threshold ({self.most:g})")

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        for tensor in measure(trial, self.selection.names(trial, step), step):
            variance = _variance(tensor)
            if variance is None or math.isnan(variance):
                reason = tensor.skipped or (
                    "its saved reductions do not reveal the variance"
                    if variance is None
                    else "its variance is not a number"
                )
                yield Judged(tensor.name, tensor.worker, skipped=reason)
                continue
            where = tensor_label(tensor.name, tensor.worker, trial)
            yield Judged(tensor.name, tensor.worker, *self._verdict(where, variance), value=variance)

    def _verdict(self, where: str, variance: float) -> tuple[Finding | None, float]:
        if self.most is not None and variance > self.most:
            limit, badness = self.most, 1e6 + variance
        elif self.least is not None and variance < self.least:
            limit, badness = self.least, -variance
        else:
            return None, 0.0
        message = f"{where}: variance {variance:.4g} (limit {limit:g})"
        return Finding(statistic="variance", value=variance, threshold=limit, message=message), badness


def _variance(tensor: WorkerStatistics) -> float | None:
    if tensor.statistics is not None:
        return tensor.statistics.variance
    saved = tensor.saved("variance")
    if saved is not None:
        return saved
    std = tensor.saved("std")
    return None if std is None else std * std


def _limit(name: str, value: Any) -> float | None:
    return number(name, value, minimum=0) if is_given(value) else None
