"""Poor first steps: uneven layer variances, flat gradients, or a loss that does not decrease."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.rules import Finding, Rule
from smdebug.rules.measurements import measure, read_values, tensor_label
from smdebug.rules.parameters import integer, number
from smdebug.rules.selection import TensorSelection
from smdebug_rules.layers.activity import activations
from smdebug_rules.loss.losses import loss_selection, losses_at, mean_loss

_RELU = ".*relu_input"


class PoorWeightInitialization(Rule):
    """Fires in the first `steps` steps that it sees, on any of three signs.

    The largest variance of an activation input is more than `threshold` times the smallest; the 5th and
    95th percentiles of a gradient are less than `distribution_range` apart; or the loss has not improved
    for `patience` saved steps.
    """

    cause = "bad initialisation"
    advice: ClassVar = {
        "": (
            "Initialise with the method that fits the activation: Kaiming for ReLU, Xavier "
            "for tanh and sigmoid.",
            "Never initialise all weights of a layer to the same value.",
            "Add a normalisation after layers whose outputs have a very different spread.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        activation_inputs_regex: Any = _RELU,
        threshold: Any = 10.0,
        distribution_range: Any = 0.001,
        patience: Any = 5,
        steps: Any = 10,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.inputs = activations(None, activation_inputs_regex, _RELU, ("relu_input",))
        self.gradients = TensorSelection(["gradients"])
        self.losses = loss_selection(None)
        self.threshold = number("threshold", threshold, minimum=1)
        self.distribution_range = number("distribution_range", distribution_range, minimum=0)
        self.patience = integer("patience", patience, minimum=1)
        self.steps = integer("steps", steps, minimum=1)
        self.steps_seen = 0
        self.best: float | None = None
        self.best_step: int | None = None
        self.steps_since_best = 0

    def invoke_at_step(self, step: int) -> bool:
        self.looked = False
        if self.steps_seen >= self.steps or self.base_trial.mode(step) is ModeKeys.EVAL:
            return False
        self.findings = [*self._layers(step), *self._flat_gradients(step), *self._stuck_loss(step)]
        self.steps_seen += bool(self.looked)
        return bool(self.findings)

    def _layers(self, step: int) -> Iterator[Finding]:
        trial = self.base_trial
        by_worker: dict[str, list[tuple[float, str]]] = {}
        for seen in measure(trial, self.inputs.names(trial, step), step):
            variance = seen.saved("variance") if seen.statistics is None else seen.statistics.variance
            if variance is None or not math.isfinite(variance):
                self.skipped[seen.name] = seen.skipped or "its variance is unknown"
            else:
                by_worker.setdefault(seen.worker, []).append((variance, seen.name))
        found = []
        for worker, layers in by_worker.items():
            (least, low), (most, high) = min(layers), max(layers)
            self.looked = True
            ratio = math.inf if least == 0 else most / least
            if ratio > self.threshold:
                found.append((-ratio, worker, least, low, most, high))
        for ratio, worker, least, low, most, high in sorted(found):
            message = f"{tensor_label(high, worker, trial)}: variance {most:.4g}"
            if not most:
                message = f"{tensor_label(low, worker, trial)}: variance 0"
            elif least == 0:
                message += f", but 0 in {low}"
            else:
                message += f" is {-ratio:.4g} times that of {low}, {least:.4g} (limit {self.threshold:g})"
            yield Finding(
                tensor=high if most else low,
                statistic="largest variance over smallest",
                value=-ratio,
                threshold=self.threshold,
                worker=worker,
                step=step,
                message=message,
                details={"smallest": low},
            )

    def _flat_gradients(self, step: int) -> Iterator[Finding]:
        trial = self.base_trial
        found = []
        for seen in read_values(trial, self.gradients.names(trial, step), step):
            if seen.value is not None and seen.value.size == 1:
                self.skipped[seen.name] = "a single value has no range"
                continue
            spread = _spread(seen.value) if seen.value is not None else _widest(seen.reductions)
            if spread is None or (seen.value is None and spread >= self.distribution_range):
                self.skipped[seen.name] = "its percentiles are unknown"
                continue
            self.looked = True
            if spread < self.distribution_range:
                found.append((spread, seen.name, seen.worker))
        for spread, name, worker in sorted(found):
            yield Finding(
                tensor=name,
                statistic="range from 5th to 95th percentile",
                value=spread,
                threshold=self.distribution_range,
                worker=worker,
                step=step,
                message=f"{tensor_label(name, worker, trial)}: 5th to 95th percentile span {spread:.4g} "
                f"(limit {self.distribution_range:g})",
            )

    def _stuck_loss(self, step: int) -> Iterator[Finding]:
        loss = mean_loss(losses_at(self.base_trial, self.losses.names(self.base_trial, step), step))
        if loss is None:
            return
        self.looked = True
        if self.best is None or loss < self.best:
            if math.isfinite(loss):
                self.best, self.best_step, self.steps_since_best = loss, step, 0
            return
        self.steps_since_best += 1
        if self.steps_since_best >= self.patience:
            yield Finding(
                statistic="steps since the best loss",
                value=self.steps_since_best,
                threshold=self.patience,
                step=step,
                message=f"loss has not been below {self.best:.4g} for {self.steps_since_best} "
                f"saved steps, since step {self.best_step}",
                details={"best": self.best, "loss": loss, "last_good_step": self.best_step},
            )


def _spread(value: Any) -> float | None:
    if not is_numeric(value) or value.dtype.kind == "c" or not value.size:
        return None
    flat = value.reshape(-1).astype(np.float64)
    flat = flat[np.isfinite(flat)]
    if not flat.size:
        return None
    low, high = np.percentile(flat, (5, 95))
    return float(high - low)


def _widest(reductions: Any) -> float | None:
    """Return the difference of the extremes, which bounds that of the percentiles."""
    least, most = reductions.get(("min", False)), reductions.get(("max", False))
    return None if least is None or most is None else float(np.max(most)) - float(np.min(least))
