"""A model that memorises its training data: the validation loss exceeds the training loss."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding, Rule
from smdebug.rules.parameters import integer, number
from smdebug_rules.loss.losses import loss_selection, losses_by_mode, why_no_mode

NO_VALIDATION = (
    "no validation loss was saved. Evaluate the model in mode EVAL now and then, with its loss saved"
)


def excess(validation: float, train: float) -> float | None:
    """Return the excess of the validation loss over the training loss, as a ratio; None if undefined."""
    if not math.isfinite(validation) or not math.isfinite(train) or train == 0:
        return None
    return (validation - train) / abs(train)


class Overfit(Rule):
    """Fires when the validation loss is more than `ratio_threshold` above the training loss.

    At the end of each block of EVAL steps, their mean loss is compared with that of the TRAIN steps since
    the previous block; it fires from the `patience`-th such block in a row on. A block ends with the next
    TRAIN step, when it has as many steps as the previous block, or with the run. If each step has both
    losses, as with XGBoost's `train-rmse` and `validation-rmse`, each step is compared.
    """

    cause = "overfitting"
    advice: ClassVar = {
        "": (
            "Stop at the step with the lowest validation loss.",
            "Add regularisation: weight decay, dropout, or augmentation of the inputs.",
            "Train with more data, or with a smaller model.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        tensor_regex: Any = None,
        start_step: Any = 0,
        patience: Any = 1,
        ratio_threshold: Any = 0.1,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = loss_selection(tensor_regex)
        self.start_step = integer("start_step", start_step, minimum=0)
        self.patience = integer("patience", patience, minimum=1)
        self.ratio_threshold = number("ratio_threshold", ratio_threshold, minimum=0)
        self.train = [0.0, 0]  # the sum and the count
        self.validation = [0.0, 0]
        self.block = 0  # EVAL steps of the current block
        self.block_before = 0
        self.is_judged = False
        self.in_a_row = 0
        self.found_since: int | None = None
        self.last_good_step: int | None = None

    def invoke_at_step(self, step: int) -> bool:
        self.looked = False
        if step < self.start_step:
            return False
        losses = losses_by_mode(self.base_trial, self.selection, step)
        if len(losses) == 2:
            return self._judge(step, losses[ModeKeys.EVAL], losses[ModeKeys.TRAIN])
        mode = self.base_trial.mode(step)
        if mode is ModeKeys.EVAL and losses:
            return self._see_validation(step, losses[ModeKeys.EVAL])
        if mode is not ModeKeys.TRAIN:
            self.skipped = why_no_mode(self.base_trial, self.selection, step)
            self.not_checked = NO_VALIDATION
            return False
        found = self._end_block(step)
        if losses:
            if not self.block_before:
                self.not_checked = NO_VALIDATION
            self.train = [self.train[0] + losses[ModeKeys.TRAIN], self.train[1] + 1]
        return found

    def invoke_at_end(self, step: int) -> bool:
        self.looked = False
        if not self.block and not self.block_before:
            self.not_checked = NO_VALIDATION
        return bool(self.block) and not self.is_judged and self._judge_means(step)

    def _see_validation(self, step: int, loss: float) -> bool:
        self.block += 1
        self.validation = [self.validation[0] + loss, self.validation[1] + 1]
        if self.block == self.block_before:
            self.is_judged = True
            return self._judge_means(step)
        return False

    def _end_block(self, step: int) -> bool:
        if not self.block:
            return False
        found = False if self.is_judged else self._judge_means(step)
        self.block, self.block_before, self.is_judged = 0, self.block, False
        self.train, self.validation = [0.0, 0], [0.0, 0]
        return found

    def _judge_means(self, step: int) -> bool:
        if not self.train[1]:
            self.skipped["losses"] = "there was no training loss since the last validation"
            return False
        validation, train = (total / count for total, count in (self.validation, self.train))
        return self._judge(step, validation, train)

    def _judge(self, step: int, validation: float, train: float) -> bool:
        ratio = excess(validation, train)
        if ratio is None:
            self.skipped["losses"] = f"{validation:g} and {train:g} cannot be compared"
            return False
        self.looked, self.checked_value = True, ratio
        if ratio <= self.ratio_threshold:
            self.in_a_row, self.found_since, self.last_good_step = 0, None, step
            return False
        self.in_a_row += 1
        if self.found_since is None:
            self.found_since = step
        if self.in_a_row < self.patience:
            return False
        times = f", {self.in_a_row} times in a row" if self.in_a_row > 1 else ""
        since = f", since step {self.found_since}" if self.found_since != step else ""
        self.findings = [
            Finding(
                statistic="ratio of validation to training loss, less 1",
                value=ratio,
                threshold=self.ratio_threshold,
                step=step,
                message=f"validation loss {validation:.4g} is {ratio:.1%} above training loss {train:.4g} "
                f"(limit {self.ratio_threshold:.4g}){times}{since}",
                details={
                    "validation_loss": validation,
                    "training_loss": train,
                    "found_since": self.found_since,
                    **_known("last_good_step", self.last_good_step),
                },
            )
        ]
        return True


def _known(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}
