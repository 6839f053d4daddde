"""Gradients so small that their layers have stopped learning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import WorkerStatistics, measure, single, tensor_label
from smdebug.rules.parameters import number

# The mean of |x| cannot exceed any of these.
_UPPER_BOUNDS = (("max", True), ("l2", True), ("l2", False), ("l1", True), ("l1", False))


def bound_on_abs_mean(reductions: Mapping[tuple[str, bool], Any]) -> float | None:
    """Return an upper bound on the mean of |x| from saved reductions; None if there is none."""
    bounds = [reductions[key] for key in _UPPER_BOUNDS if key in reductions]
    if ("min", False) in reductions and ("max", False) in reductions:
        bounds.append(max(abs(reductions["min", False]), abs(reductions["max", False])))
    numbers = [float(bound) for bound in map(single, bounds) if bound is not None]
    return min(numbers, default=None)


class VanishingGradient(TensorRule):
    """Fires when the mean of |gradient| is below `threshold`, for any tensor of `gradients`."""

    cause = "vanishing gradient"
    advice: ClassVar = {
        "": (
            "Replace sigmoid and tanh by ReLU or GELU in hidden layers.",
            "Add residual connections or normalisation between the layers.",
            "Initialise with the method that fits the activation: Kaiming for ReLU, Xavier for tanh.",
        )
    }

    def __init__(self, base_trial: Any, threshold: Any = 1e-7, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.threshold = number("threshold", threshold, minimum=0)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        if "gradients" not in trial.collections():
            return
        names = trial.tensor_names(step=step, collection="gradients")
        for gradient in measure(trial, names, step, saved=("mean", True)):
            known = _abs_mean(gradient)
            mean = bound_on_abs_mean(gradient.reductions) if known is None else known
            if mean is None or (known is None and mean >= self.threshold):
                skipped = gradient.skipped or "its saved reductions do not reveal the mean of |x|"
                yield Judged(gradient.name, gradient.worker, skipped=skipped)
                continue
            finding = None
            if mean < self.threshold:
                finding = Finding(
                    statistic="mean of |x|",
                    value=mean,
                    threshold=self.threshold,
                    message=f"{tensor_label(gradient.name, gradient.worker, trial)}: the mean of |gradient| "
                    f"is {'at most ' if known is None else ''}{mean:.4g}, below {self.threshold:g}",
                )
            yield Judged(gradient.name, gradient.worker, finding, badness=-mean, value=mean)


def _abs_mean(gradient: WorkerStatistics) -> float | None:
    saved = gradient.saved("mean", abs=True)
    if saved is not None:
        return saved
    return None if gradient.statistics is None else gradient.statistics.abs_mean
