"""Losses of micro-batches that are added up where they should be averaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_PASSES = 3
REPEATS = 2


class AccumulationScale(DefaultRule):
    """Fires when several backward passes make one step, and the loss is not divided by their number."""

    cause = "accumulation scale"
    needs = "no optimizer step with its backward passes and its loss was saved"
    advice: ClassVar[Advice] = {
        "accumulation scale": (
            "Divide the loss by the number of micro-batches before backward().",
            "If the number varies, divide by the number of tokens or rows of the whole batch.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.seen_at: list[int] = []
        self.factor: float | None = None
        self.passes = 0
        self.scale: float | None = None

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        facts = seen.facts
        loss = facts.get("loss")
        if loss and loss.get("terms"):
            self.factor = loss.get("factor")
        passes = facts.get("backward_passes")
        if not facts.get("optimizer_steps") or not passes or self.factor is None:
            self.looked = False
            return
        if len(facts.get("optimizers") or ()) != 1 or facts["optimizers"][0].get("class") == "LBFGS":
            self.lacks("the backward passes do not belong to the steps of one optimizer")
            return
        # The passes of steps that a scaler skipped are counted with those of the next step.
        before, self.passes = self.passes, passes
        scale_before, self.scale = self.scale, facts.get("loss_scale")
        is_summed = passes >= LEAST_PASSES and abs(self.factor) > 0.75
        is_steady = passes == before and self.scale == scale_before
        if not is_summed or not (is_steady or not self.seen_at):
            self.seen_at = []
            return
        if facts.get("gradients_were_reset") is False:
            return
        self.seen_at = [*self.seen_at, seen.step][:REPEATS]
        if len(self.seen_at) < REPEATS:
            return
        yield self.finding(
            f"{passes} backward passes make one step of the optimizer, and the loss is multiplied "
            f"by {self.factor:.3g}: the gradient is the sum of the micro-batches, not their mean",
            since=self.seen_at[0],
            tensor="loss",
            statistic="backward passes times the factor of the loss",
            value=passes * self.factor,
            limit=1.0,
            why=(
                f"{passes} passes times {self.factor:.3g} is {passes * self.factor:.3g}; a mean would have 1",
            ),
            advice=(
                f"Divide the loss of each micro-batch by {passes} before backward(): (loss "
                f"/ {passes}).backward().",
                self.advice["accumulation scale"][1],
            ),
        )
