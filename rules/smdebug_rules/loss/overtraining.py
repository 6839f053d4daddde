"""A training that continues although neither loss improves."""

from __future__ import annotations

from typing import Any, ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding, Rule
from smdebug.rules.parameters import integer, number, one_of
from smdebug_rules.loss.losses import loss_selection, losses_by_mode, why_no_mode


class Overtraining(Rule):
    """Fires when neither loss improved for `patience_train` TRAIN and `patience_validation` EVAL steps.

    Saved steps are counted. A loss improves if it is more than `delta` below the best. With combine="or",
    one of the two is enough. A loss that is not finite is never the best.
    """

    cause = "overfitting"
    advice: ClassVar = {
        "": (
            "Stop the training, and use the checkpoint of the best validation loss.",
            "Lower the learning rate when the validation loss stops falling.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        patience_train: Any = 5,
        patience_validation: Any = 10,
        delta: Any = 0.01,
        tensor_regex: Any = None,
        combine: Any = "and",
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.patience = {
            ModeKeys.TRAIN: integer("patience_train", patience_train, minimum=1),
            ModeKeys.EVAL: integer("patience_validation", patience_validation, minimum=1),
        }
        self.delta = number("delta", delta, minimum=0)
        self.selection = loss_selection(tensor_regex)
        self.needs_both = one_of("combine", combine, ("and", "or")) == "and"
        self.best: dict[ModeKeys, float] = {}
        self.best_step: dict[ModeKeys, int] = {}
        self.steps_since: dict[ModeKeys, int] = {}

    def invoke_at_step(self, step: int) -> bool:
        losses = losses_by_mode(self.base_trial, self.selection, step)
        missing = [mode for mode in self.patience if mode not in {*self.best, *losses}]
        self.looked = bool(losses) and not (self.needs_both and missing)
        if self.needs_both and missing:
            names = " and ".join(_NAMES[mode] for mode in missing)
            self.not_checked = f"no {names} loss was saved"
        if not losses:
            self.skipped = why_no_mode(self.base_trial, self.selection, step)
        for mode, loss in losses.items():
            if mode in self.best and not loss < self.best[mode] - self.delta:
                self.steps_since[mode] += 1
            elif loss == loss and abs(loss) != float("inf"):
                self.best[mode], self.best_step[mode], self.steps_since[mode] = loss, step, 0
        self.checked_value = [*self.steps_since.values()]
        expired = [
            mode for mode, patience in self.patience.items() if self.steps_since.get(mode, 0) >= patience
        ]
        if not losses or len(expired) < (2 if self.needs_both else 1):
            return False
        self.findings = [
            Finding(
                statistic=f"steps since the best {_NAMES[mode]} loss",
                value=self.steps_since[mode],
                threshold=self.patience[mode],
                step=step,
                message=f"{_NAMES[mode]} loss has not improved on {self.best[mode]:.4g} by more than "
                f"{self.delta:g} for {self.steps_since[mode]} saved steps, since step "
                f"{self.best_step[mode]}",
                details={"best": self.best[mode], "last_good_step": self.best_step[mode]},
            )
            for mode in sorted(expired, key=lambda mode: self.patience[mode] - self.steps_since[mode])
        ]
        return True


_NAMES = {ModeKeys.TRAIN: "training", ModeKeys.EVAL: "validation"}
