"""A model that learns its training data and not the task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.rules import Finding
from smdebug.rules.robust import best_so_far, median, remember
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded
from smdebug_default_rules.base import BOTH, Advice, DefaultRule
from smdebug_default_rules.loss import shared_rows, strong_dropout
from smdebug_default_rules.tensors import Modules

PATIENCE = 3
WORSE = 1.15
NEVER_BETTER = 0.05
"""A validation that never got better by this share than the untrained model has learnt nothing."""
UNTRAINED = 3
"""The first losses of the training, at which the model knows nothing."""
MOST_KEPT = 200
RECENT = 64
"""The level of the training at a validation is that of this many losses before it."""

SHIFTED, STRETCHED = 1.0, 3.0
"""Means that are a spread apart, or spreads of so many times each other, are of different preparations."""
LEAST_OF_FALL = 0.03
"""Validation must lose this share of its improvement since the first losses."""


class Generalisation(DefaultRule):
    """Fires when validation gets worse for several validations in a row while training gets better.

    If validation never got better than it was at first, the model memorises. It also fires when
    all batches of the validation have rows that the training has, too, and when dropout of 0.85 or more keeps
    the training loss high while validation, without it, is far lower.
    """

    cause = "overfitting"
    modes = BOTH
    advice: ClassVar[Advice] = {
        "overfitting": (
            "Stop at the best validation, or restore the weights of that step.",
            "Use more data, augmentation, weight decay or dropout, or a smaller model.",
        ),
        "memorising": (
            "Check that the labels belong to the inputs, and "
            "that training and validation are prepared in the same way.",
            "Train on a part with labels that you have checked by hand.",
        ),
        "evaluation input": (
            "Prepare the inputs of the validation as those of the training: the same scaling and "
            "normalisation, with the mean and the standard deviation of the training data.",
        ),
        "shared rows": (
            "Split once, before anything is copied, oversampled or augmented, and keep the indices of both "
            "parts: random_split with a seeded generator, or train_test_split called a single time.",
            "If rows belong together, as those of one patient do, split by that group.",
        ),
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self._begin()

    def _begin(self) -> None:
        """Keep nothing yet."""
        self.sum, self.number, self.began = 0.0, 0, -1
        self.first_step: int | None = None
        self.steps: list[int] = []
        self.validation: list[float] = []
        self.training: list[float] = []
        self.recent: list[float] = []
        self.first_training: list[float] = []
        self.inputs: dict[str, list[Any]] = {}
        """Name, mean and spread of the first input, in training and in validation."""
        self.rows, self.batches = shared_rows.empty(), 0
        self.losses = 0
        """The number of losses of the training."""
        self.dropped: list[Any] = []
        """The module that drops nearly all values, and its rate."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        if self.is_another_training(seen):
            self._begin()
            return
        self._note_inputs(seen)
        shared_rows.add(self.rows, seen)
        if seen.mode in TRAINING:
            self.dropped = list(strong_dropout.dropped(seen.facts) or ())
        rows = seen.series("loss")
        if self.first_step is None:
            self.first_step = seen.step
        values = rounded(rows[:, 3].tolist())
        for (step, mode, *_), value in zip(rows.tolist(), values, strict=True):
            if mode == ModeKeys.EVAL.value:
                self._validated(int(step), value)
            elif mode != ModeKeys.PREDICT.value:
                self._trained(value)
        if not self.validation:
            if not self.number and seen.mode is not ModeKeys.EVAL:
                self.lacks("no validation loss was saved")
            return
        yield from self._shares_rows(seen)
        yield from self._held_back(seen)
        yield from self._judged()

    def _shares_rows(self, seen: ObservedStep) -> Iterator[Finding]:
        found = shared_rows.shared(self.rows, max(self.number, self.batches))
        if found is None:
            return
        yield self.finding(
            f"About {found.share:.0%} of the rows of the validation are rows of the training: its loss says "
            "little about new data",
            cause="shared rows",
            since=found.since,
            tensor=Modules.of(seen).input or "loss",
            statistic="share of the validation that is trained on",
            value=found.share,
            limit=shared_rows.SHARED,
            title="The model is validated on rows that it learns from",
            why=(
                f"{found.shared} of {found.rows} rows of the validation that were compared are bit-equal to "
                "rows of saved training steps",
            ),
            advice=self.advice["shared rows"],
        )

    def _held_back(self, seen: ObservedStep) -> Iterator[Finding]:
        start = median(self.first_training) if self.first_training else math.nan
        if not self.dropped or not strong_dropout.holds_back(
            start, self.training, self.validation, self.losses
        ):
            return
        module, rate = self.dropped
        name = Modules.of(seen).described(module)
        yield self.finding(
            f"The training loss is {self.training[-1]:.4g} after {self.losses} steps and began at "
            f"{start:.4g}, while the validation loss is {self.validation[-1]:.4g}: dropout in {name} sets "
            f"{rate:.0%} of the values to 0 in training",
            cause="not learning",
            since=self.first_step or 0,
            tensor=module,
            statistic="dropout",
            value=rate,
            limit=strong_dropout.STRONG,
            title="Dropout leaves too little to learn from",
            why=(
                f"p={rate:g}: one value in {1 / max(1 - rate, 0.001):.0f} is left",
                f"Training {self.training[-1]:.4g}, validation {self.validation[-1]:.4g}",
            ),
            advice=(strong_dropout.advice(name, rate),),
        )

    def _validated(self, step: int, value: float) -> None:
        if not self.number:
            self.began = step
        if math.isfinite(value):
            self.sum, self.number = self.sum + value, self.number + 1

    def _trained(self, value: float) -> None:
        if self.number:  # the validation has ended
            self.steps = [*self.steps, self.began][-MOST_KEPT:]
            mean, level = rounded((self.sum / self.number, median(self.recent)))
            self.validation = [*self.validation, mean][-MOST_KEPT:]
            self.training = [*self.training, level][-MOST_KEPT:]
            self.batches = max(self.batches, self.number)
            self.sum, self.number, self.recent = 0.0, 0, []
        if math.isfinite(value):
            self.losses += 1
            remember(self.recent, (value,), RECENT)
            if len(self.first_training) < 10:
                self.first_training.append(value)

    def _note_inputs(self, seen: ObservedStep) -> None:
        inputs = seen.statistics("inputs")
        if inputs is None or "float" not in inputs.tensors[0].dtype:
            return
        kind = "validation" if seen.mode is ModeKeys.EVAL else "training"
        measured = rounded((float(inputs.column("mean")[0]), float(inputs.column("std")[0])))
        if all(map(math.isfinite, measured)):
            self.inputs[kind] = [inputs.names[0], *measured]

    def _inputs_differ(self) -> str:
        """How the inputs of the validation differ from those of the training; "" if they do not."""
        if len(self.inputs) < 2:
            return ""
        name, mean, spread = self.inputs["training"]
        _, other, other_spread = self.inputs["validation"]
        is_shifted = abs(other - mean) > SHIFTED * max(spread, other_spread)
        least, most = sorted((spread, other_spread))
        if not is_shifted and most < STRETCHED * least:
            return ""
        return (
            f"{name} has a mean of {mean:.3g} and a spread of {spread:.3g} in training, {other:.3g} and "
            f"{other_spread:.3g} in validation"
        )

    def _judged(self) -> Iterator[Finding]:
        validation, training = self.validation, self.training
        if len(validation) <= PATIENCE:
            self.lacks(f"there are fewer than {PATIENCE + 1} validations so far")
            return
        best = best_so_far(self.steps, validation)
        if best is None or best.checks_since < PATIENCE:
            return
        last = min(validation[-PATIENCE:])
        at_best = training[self.steps.index(best.step)] if best.step in self.steps else training[0]
        fell = training[-1] < at_best and training[-1] < 0.9 * float(np.median(self.first_training))
        if last < WORSE * best.value or not fell or validation[-1] < 1.3 * training[-1]:
            return
        untrained = max(validation[0], self.first_training[0])
        if last - best.value < LEAST_OF_FALL * (untrained - best.value):
            return  # near its floor, a small validation set wobbles by more than its best
        start = float(np.median(self.first_training[:UNTRAINED]))
        never = best.value > (1 - NEVER_BETTER) * start
        since = self.steps[validation.index(best.value) + 1]
        if never:
            differ = self._inputs_differ()
            if differ:
                message = (
                    f"{differ}: the validation loss never got better than {best.value:.4g}, and the training "
                    f"loss fell from {start:.4g} to {training[-1]:.4g}"
                )
                at = self.first_step or 0
                yield self._found(message, "evaluation input", at, validation[-1] / best.value)
                return
            message = (
                f"The training loss fell from {start:.4g} to {training[-1]:.4g}, and the "
                "validation loss never got "
                f"better than {best.value:.4g}: it is {validation[-1]:.4g} now"
            )
            yield self._found(message, "memorising", self.first_step or 0, validation[-1] / best.value)
            return
        message = (
            f"The validation loss is {validation[-1]:.4g}, {validation[-1] / best.value:.3g} "
            f"times its best ({best.value:.4g} at step {best.step}), and was above it at the last "
            f"{best.checks_since} validations, while the training loss fell to {training[-1]:.4g}"
        )
        yield self._found(message, "overfitting", since, validation[-1] / best.value)

    def _found(self, message: str, cause: str, since: int, value: float) -> Finding:
        return self.finding(
            message,
            cause=cause,
            since=since,
            tensor="loss",
            statistic="times the best validation",
            value=value,
            limit=WORSE,
            why=(
                f"Validation {self.validation[-1]:.4g}, training {self.training[-1]:.4g} at the last of "
                f"{len(self.validation)} validations",
            ),
        )
