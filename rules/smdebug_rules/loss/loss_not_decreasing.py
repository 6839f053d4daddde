"""A loss that does not decrease, or not fast enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import each_worker, step_in_mode, step_label, tensor_label
from smdebug.rules.parameters import boolean, integer, is_given, number, strings
from smdebug.rules.selection import TensorSelection
from smdebug_rules.loss.losses import is_gain, loss_of, parse_mode


@dataclass(frozen=True)
class Limits:
    """The required decrease of a loss and the tolerated increase, in percent (None: it must decrease)."""

    min_difference: float = 0.0
    increase_threshold_percent: float | None = None

    comes_from_parameters: ClassVar[bool] = True

    def crossed_by(self, fallen: float) -> float:
        """Return the required decrease in percent; a tolerated increase is negative."""
        if self.increase_threshold_percent is not None and fallen < 0:
            return -self.increase_threshold_percent
        return self.min_difference


def improvement(before: float, now: float) -> float:
    """Return the decrease in percent; negative if the loss has risen."""
    if before == 0 or not math.isfinite(before):
        return 0.0 if now == before else math.copysign(math.inf, before - now)
    return 100.0 * (before - now) / abs(before)


def is_stuck(before: float, now: float, limits: Limits) -> bool:
    """Return whether the loss failed to decrease as required; a loss that is not finite did."""
    if not math.isfinite(now):
        return True
    if math.isnan(before):
        return False  # it has recovered
    fallen = improvement(before, now)
    if limits.increase_threshold_percent is not None and fallen < 0:
        return -fallen > limits.increase_threshold_percent
    if limits.increase_threshold_percent is None and limits.min_difference == 0:
        return now >= before
    return fallen < limits.min_difference


class LossNotDecreasing(TensorRule):
    """Fires when a loss is not at least `min_difference` percent below what it was `num_steps` ago.

    Every `num_steps` steps, a loss is compared with its latest value that is at least `num_steps` old.
    Without `mode`, losses of training and of validation are checked separately. Losses are scalars: other
    tensors are skipped.
    """

    cause = "not learning"
    advice: ClassVar = {
        "": (
            "Change the learning rate by a factor of 3 in both "
            "directions, and compare the first hundred steps.",
            "Check that the model can memorise one batch; if it cannot, the loss, the "
            "labels or the update are wrong.",
            "Check that the optimizer has the model's parameters, "
            "and that gradients are reset at every step.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        use_losses_collection: Any = True,
        num_steps: Any = 10,
        min_difference: Any = 0.0,
        increase_threshold_percent: Any = None,
        mode: Any = None,
        *,
        diff_percent: Any = None,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.use_losses_collection = boolean("use_losses_collection", use_losses_collection)
        names = strings("collection_names", collection_names)
        if self.use_losses_collection:
            names.append("losses")
        self.selection = TensorSelection(names, tensor_regex)
        if not self.selection:
            raise SMDebugValueError(
                "LossNotDecreasing needs use_losses_collection, collection_names or tensor_regex"
            )
        self.num_steps = integer("num_steps", num_steps, minimum=1)
        self.limits = _limits(min_difference, diff_percent, increase_threshold_percent)
        self.mode = parse_mode(mode)
        self.last_checked: dict[tuple[str, str, str], int] = {}

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        mode = self.mode or self._mode_of(step)
        now = step_in_mode(trial, step, mode)
        if now is None:
            return
        for tensor, worker in each_worker(trial, self.selection.names(trial, step), step):
            key = (tensor.name, worker, mode.name)
            if key not in self.last_checked or now >= self.last_checked[key] + self.num_steps:
                yield self._judged(tensor, worker, mode, now)

    def _mode_of(self, step: int) -> ModeKeys:
        """Return the step's own mode: training losses are compared with training losses, also once there
        are validation losses."""
        mode, _ = self.base_trial.mode_modestep(step)
        return mode if mode in (ModeKeys.EVAL, ModeKeys.TRAIN) else ModeKeys.GLOBAL

    def _judged(self, tensor: Any, worker: str, mode: ModeKeys, now: int) -> Judged:
        if is_gain(tensor.name) and not self.selection.names_itself(tensor.name):
            return Judged(tensor.name, worker, skipped="larger values of this metric are better")
        loss = loss_of(tensor, now, worker, mode)
        if loss is None:
            return Judged(tensor.name, worker, skipped="it is not a scalar")
        then, before = self._earlier(tensor, worker, mode, now)
        if before is None and math.isfinite(loss):
            reason = f"no loss from {self.num_steps} steps earlier to compare with"
            return Judged(tensor.name, worker, skipped=reason)
        key = (tensor.name, worker, mode.name)
        checked, self.last_checked[key] = self.last_checked.get(key), now
        fallen = math.nan if before is None else improvement(before, loss)
        if before is not None and not is_stuck(before, loss, self.limits):
            return Judged(tensor.name, worker, value=fallen)
        message = tensor_label(tensor.name, worker, self.base_trial)
        message += f": loss is {_loss_text(loss)} at {step_label(now, mode)}"
        if before is not None and then is not None:
            message += f", {_change(fallen)} {_loss_text(before)} at {step_label(then, mode)}"
        finding = Finding(
            statistic="loss decrease in percent",
            value=fallen,
            threshold=self.limits.crossed_by(fallen),
            message=message,
            details={
                "loss": loss,
                "before": before,
                "since": then,
                "mode": mode.name,
                "last_good_step": None if checked is None else self.base_trial.global_step(mode, checked),
            },
        )
        badness = math.inf if math.isnan(fallen) else -fallen
        return Judged(tensor.name, worker, finding, badness, value=fallen)

    def _earlier(self, tensor: Any, worker: str, mode: ModeKeys, now: int) -> tuple[int | None, float | None]:
        """Return the worker's latest loss that is at least `num_steps` old, and its step."""
        latest = now - self.num_steps
        while latest >= 0 and (steps := tensor.prev_steps(latest, 1, mode)):
            (step,) = steps
            if worker in tensor.workers(step, mode):
                loss = loss_of(tensor, step, worker, mode)
                if loss is not None:
                    return step, loss
            latest = step - 1
        return None, None


def _loss_text(loss: float) -> str:
    return "NaN" if math.isnan(loss) else f"{loss:.6g}"


def _change(fallen: float) -> str:
    if fallen == 0:
        return "unchanged from"
    if not math.isfinite(fallen):
        return "was"
    return f"{'down' if fallen > 0 else 'up'} {abs(fallen):.3g} % from"


def _limits(min_difference: Any, diff_percent: Any, increase: Any) -> Limits:
    fall = number("min_difference", min_difference, minimum=0, maximum=100)
    if diff_percent is not None:
        other = number("diff_percent", diff_percent, minimum=0, maximum=100)
        if fall not in (0.0, other):
            raise SMDebugValueError(
                f"min_difference and diff_percent are the same parameter, and differ: {fall:g} and {other:g}"
            )
        fall = other
    rise = None
    if is_given(increase):
        rise = number("increase_threshold_percent", increase, minimum=0)
    return Limits(fall, rise)
