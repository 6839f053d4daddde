"""Tensors in which all values, or a given percentage, are zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import WorkerStatistics, measure, single, tensor_label
from smdebug.rules.parameters import number
from smdebug.rules.selection import TensorSelection

_ONLY_ZERO_IF_ALL_ARE = (("max", True), ("l1", False), ("l1", True), ("l2", False), ("l2", True))
# Squares smaller than a float32 can hold are zero in a sum; l1 and the extremes have no such gap.
_PROOFS = frozenset((("max", True), ("l1", False), ("l1", True)))


def percent_zero_by_reductions(reductions: Mapping[tuple[str, bool], Any]) -> float | None:
    """Return 100 if saved reductions prove it, 0 if they prove that it is less, else None."""
    numbers = {key: single(value) for key, value in reductions.items()}
    extremes = [numbers.get(("min", False)), numbers.get(("max", False))]
    if None not in extremes:
        return 100.0 if extremes[0] == extremes[1] == 0 else 0.0
    for key in _ONLY_ZERO_IF_ALL_ARE:
        value = numbers.get(key)
        if value is not None and value != 0:
            return 0.0
        if value is not None and key in _PROOFS:
            return 100.0
    return None


class AllZero(TensorRule):
    """Fires when at least `threshold` percent of a selected tensor's values are zero."""

    advice: ClassVar = {
        "": (
            "Check whether the tensor is written to at all: a mask, a dropout rate of 1, or "
            "an input that is never filled.",
            "Plot its distribution over steps (`smdebug plot RUN --tensor NAME --kind "
            "heatmap`) to see when it became zero.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        threshold: Any = 100.0,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = TensorSelection(collection_names, tensor_regex)
        if not self.selection:
            raise SMDebugValueError("AllZero needs collection_names or tensor_regex")
        self.threshold = number("threshold", threshold, minimum=0, maximum=100)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        for tensor in measure(trial, self.selection.names(trial, step), step):
            percent = self._percent_zero(tensor)
            if percent is None:
                skipped = tensor.skipped or "its saved reductions do not reveal how many values are zero"
                yield Judged(tensor.name, tensor.worker, skipped=skipped)
                continue
            finding = None
            if percent >= self.threshold:
                finding = Finding(
                    statistic="percent of zeros",
                    value=percent,
                    threshold=self.threshold,
                    message=_message(tensor_label(tensor.name, tensor.worker, trial), percent, tensor),
                )
            yield Judged(tensor.name, tensor.worker, finding, badness=percent, value=percent)

    def _percent_zero(self, tensor: WorkerStatistics) -> float | None:
        if tensor.statistics is not None:
            return tensor.statistics.percent_zero
        percent = percent_zero_by_reductions(tensor.reductions)
        # Some value is not zero, but the percentage is unknown.
        return None if percent == 0.0 and self.threshold < 100 else percent


def _message(where: str, percent: float, tensor: WorkerStatistics) -> str:
    if tensor.statistics is None:
        return f"{where}: all values are zero (from saved reductions)"
    if percent == 100:
        return f"{where}: all {tensor.statistics.size} values are zero"
    return f"{where}: {percent:.4g} % of {tensor.statistics.size} values are zero"
