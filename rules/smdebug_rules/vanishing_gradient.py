"""Gradients so small that the layers they belong to have stopped learning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding, Rule
from smdebug.rules.looking import each_worker, named, reduction_of, reductions_of, single
from smdebug.rules.parameters import number


def vanished(abs_means: Mapping[Any, float], threshold: float) -> Iterator[tuple[Any, float]]:
    """The gradients whose mean magnitude is below `threshold`, and that mean; the smallest first."""
    below = ((name, mean) for name, mean in abs_means.items() if mean < threshold)
    return iter(sorted(below, key=lambda found: (found[1], found[0])))


# No mean of magnitudes is larger than any of these.
_UPPER_BOUNDS = (("max", True), ("l2", True), ("l2", False), ("l1", True), ("l1", False))


def bound_on_abs_mean(reductions: Mapping[tuple[str, bool], Any]) -> float | None:
    """What the mean of |x| is at most, going by saved reductions; None if they do not tell."""
    bounds = [reductions[key] for key in _UPPER_BOUNDS if key in reductions]
    if ("min", False) in reductions and ("max", False) in reductions:
        bounds.append(max(abs(reductions["min", False]), abs(reductions["max", False])))
    numbers = [float(one) for one in map(single, bounds) if one is not None]
    return min(numbers, default=None)


class VanishingGradient(Rule):
    """Fires when the mean of |gradient| is below `threshold`, for any tensor of `gradients`."""

    def __init__(self, base_trial: Any, threshold: Any = 1e-7, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.threshold = number("threshold", threshold, minimum=0)

    def invoke_at_step(self, step: int) -> bool:
        trial = self.base_trial
        names = []
        if "gradients" in trial.collections():
            names = trial.tensor_names(step=step, collection="gradients")
        means: dict[tuple[str, str], float] = {}
        for tensor, worker in each_worker(trial, names, step):
            mean = reduction_of(tensor, step, "mean", ModeKeys.GLOBAL, worker, abs=True)
            if mean is None:
                mean = bound_on_abs_mean(reductions_of(tensor, step, ModeKeys.GLOBAL, worker))
            if mean is not None:
                means[tensor.name, worker] = float(mean)
        self.looked = bool(means)
        self.findings = [
            Finding(
                tensor=name,
                statistic="mean of |x|",
                value=mean,
                threshold=self.threshold,
                worker=worker,
                step=step,
                message=f"{named(name, worker, trial)}: the mean of |gradient| is {mean:.4g}, "
                f"below {self.threshold:g}",
            )
            for (name, worker), mean in vanished(means, self.threshold)
        ]
        return bool(self.findings)
