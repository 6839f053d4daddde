"""Gradients so small that the layers they belong to have stopped learning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import WorkerStatistics, measure, single, tensor_label
from smdebug.rules.parameters import number

# No mean of magnitudes is larger than any of these.
_UPPER_BOUNDS = (("max", True), ("l2", True), ("l2", False), ("l1", True), ("l1", False))


def bound_on_abs_mean(reductions: Mapping[tuple[str, bool], Any]) -> float | None:
    """What the mean of |x| is at most, going by saved reductions; None if they do not tell."""
    bounds = [reductions[key] for key in _UPPER_BOUNDS if key in reductions]
    if ("min", False) in reductions and ("max", False) in reductions:
        bounds.append(max(abs(reductions["min", False]), abs(reductions["max", False])))
    numbers = [float(one) for one in map(single, bounds) if one is not None]
    return min(numbers, default=None)


class VanishingGradient(TensorRule):
    """Fires when the mean of |gradient| is below `threshold`, for any tensor of `gradients`."""

    def __init__(self, base_trial: Any, threshold: Any = 1e-7, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.threshold = number("threshold", threshold, minimum=0)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        if "gradients" not in trial.collections():
            return
        names = trial.tensor_names(step=step, collection="gradients")
        for seen in measure(trial, names, step, saved=("mean", True)):
            known = _abs_mean(seen)
            mean = bound_on_abs_mean(seen.reductions) if known is None else known
            if mean is None or (known is None and mean >= self.threshold):
                skipped = seen.skipped or "its saved reductions do not tell the mean of |x|"
                yield Judged(seen.name, seen.worker, skipped=skipped)
                continue
            finding = None
            if mean < self.threshold:
                finding = Finding(
                    statistic="mean of |x|",
                    value=mean,
                    threshold=self.threshold,
                    message=f"{tensor_label(seen.name, seen.worker, trial)}: the mean of |gradient| is "
                    f"{'at most ' if known is None else ''}{mean:.4g}, below {self.threshold:g}",
                )
            yield Judged(seen.name, seen.worker, finding, badness=-mean)


def _abs_mean(seen: WorkerStatistics) -> float | None:
    saved = seen.saved("mean", abs=True)
    if saved is not None:
        return saved
    return None if seen.statistics is None else seen.statistics.mean_abs
