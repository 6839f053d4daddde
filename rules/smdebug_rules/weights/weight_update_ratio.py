"""Weights that change too much, or too little, from step to step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import abs_mean, is_numeric, mean_abs_difference
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import (
    each_worker,
    step_in_mode,
    step_label,
    steps_between,
    tensor_label,
    value_of,
)
from smdebug.rules.parameters import integer, number


def update_ratio(weight: Any, before: Any, epsilon: float) -> float:
    """Return the size of the update relative to the weights that it changed."""
    change = mean_abs_difference(weight, before)
    scale = abs_mean(before) + epsilon
    if scale == 0:  # all weights were zero, and there is no epsilon
        return math.inf if change else 0.0
    return change / scale


class WeightUpdateRatio(TensorRule):
    """Fires when the ratio of update to weight is above `large_threshold` or below `small_threshold`.

    A tensor of `weights` is compared with the previous saved step, or with the oldest one of the last
    `num_steps` steps. If there are training steps, only those are compared.
    """

    cause = "learning rate"
    advice: ClassVar = {
        "": (
            "If the ratio is above the limit, divide the learning rate of these weights by "
            "10, or warm it up over the first steps.",
            "If it is below the limit, multiply the learning rate by 10, and check that it "
            "has not decayed to zero.",
            "A ratio near 0.001 is typical of a training that goes well.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        large_threshold: Any = 10.0,
        small_threshold: Any = 1e-8,
        num_steps: Any = None,
        epsilon: Any = 1e-9,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.large_threshold = number("large_threshold", large_threshold, minimum=0)
        self.small_threshold = number("small_threshold", small_threshold, minimum=0)
        self.epsilon = number("epsilon", epsilon, minimum=0)
        self.num_steps = None
        if num_steps not in (None, "", "None"):
            self.num_steps = integer("num_steps", num_steps, minimum=1)
        if self.small_threshold > self.large_threshold:
            raise SMDebugValueError(
                f"small_threshold ({self.small_threshold:g}) is above "
                f"large_threshold ({self.large_threshold:g})"
            )

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        if "weights" not in trial.collections():
            return
        names = trial.tensor_names(step=step, collection="weights")
        mode = self._mode(names, step)
        now = step_in_mode(trial, step, mode)
        if now is None:
            return
        before: dict[str, int | None] = {}
        for tensor, worker in each_worker(trial, names, step):
            if tensor.name not in before:
                before[tensor.name] = self._step_before(tensor, now, mode)
            then = before[tensor.name]
            ratio = self._ratio(tensor, worker, now, then, mode)
            if ratio is None:
                reason = "there is no earlier value of the same shape to compare with"
                yield Judged(tensor.name, worker, skipped=reason)
                continue
            details: dict[str, Any] = {"since": then}
            if mode is not ModeKeys.GLOBAL:  # steps of other modes are not checked
                previous = tensor.prev_steps(now, 2, mode)[0]
                details["last_good_step"] = trial.global_step(mode, previous)
            finding = self._finding(tensor_label(tensor.name, worker, trial), ratio, mode, details)
            badness = _badness(ratio, self.large_threshold)
            yield Judged(tensor.name, worker, finding, badness, value=ratio)

    def _mode(self, names: Iterable[str], step: int) -> ModeKeys:
        """Return TRAIN if weights were saved at a training step up to this step, else GLOBAL."""
        trial = self.base_trial
        if ModeKeys.TRAIN in trial.modes():
            for name in names:
                first = trial.tensor(name).first_seen(ModeKeys.TRAIN)
                if first is not None and first <= step:
                    return ModeKeys.TRAIN
        return ModeKeys.GLOBAL

    def _step_before(self, tensor: Any, now: int, mode: ModeKeys) -> int | None:
        if self.num_steps is None:
            steps = tensor.prev_steps(now, 2, mode)
        else:
            steps = steps_between(tensor, now - self.num_steps, now, mode)
        return next((step for step in steps if step < now), None)

    def _ratio(self, tensor: Any, worker: str, now: int, then: int | None, mode: ModeKeys) -> float | None:
        if then is None:
            return None
        weight, before = (value_of(tensor, step, mode, worker) for step in (now, then))
        if weight is None or before is None or weight.shape != before.shape or not weight.size:
            return None
        if not (is_numeric(weight) and is_numeric(before)):
            return None
        return update_ratio(weight, before, self.epsilon)

    def _finding(self, name: str, ratio: float, mode: ModeKeys, details: Mapping[str, Any]) -> Finding | None:
        if self.small_threshold <= ratio <= self.large_threshold:
            return None
        is_small = ratio < self.small_threshold
        threshold = self.small_threshold if is_small else self.large_threshold
        size = "NaN" if math.isnan(ratio) else f"{ratio:.4g}"
        since = step_label(details["since"], mode)
        return Finding(
            statistic="update/weight ratio",
            value=ratio,
            threshold=threshold,
            message=f"{name}: update/weight ratio {size} since {since} (limit {threshold:g})",
            details=details,
        )


def _badness(ratio: float, large_threshold: float) -> float:
    """Return how far the ratio exceeds its limit, in powers of ten; too large ranks above too small."""
    if math.isnan(ratio) or math.isinf(ratio):
        return math.inf
    if ratio > large_threshold:
        return 1000 + math.log10(ratio)
    return -math.log10(ratio) if ratio else 500
