"""Losses of micro-batches that are added up where they should be averaged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_PASSES = 3
REPEATS = 2


EXACT = 1e-3
"""How close to a share of the passes a factor is one that was computed from them."""
_ONCE = (
    "Divide the loss by the number of passes once: a trainer may do so already, such as Accelerate's "
    "accumulate() or a loss that is given num_items_in_batch."
)
_RESET = (
    "Call optimizer.zero_grad() once per step, after optimizer.step(), and not before each backward pass."
)


class AccumulationScale(DefaultRule):
    """Fires when several backward passes make one step, and the loss is not divided by their number.

    Also where it is divided by it twice, by it once where gradients are reset between the passes, or by a
    number of accumulated losses that no step has: the training's own name for that number is read, such as
    `accumulation_steps`. Passes through one graph, as of the losses of several tasks, are not those of
    micro-batches.
    """

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
        self.is_sum = False
        """Whether the criterion sums: the loss is divided by the number of its rows, too."""
        self.passes = 0
        self.scale: float | None = None
        self.others: dict[str, list[int]] = {}
        self.wanted: dict[str, Any] = {}
        """What the training calls the number of losses that it divides by, and that number."""
        self.most_passes = 0

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        facts = seen.facts
        loss = facts.get("loss")
        if loss and loss.get("terms"):
            self.factor = loss.get("factor")
            self.is_sum = loss["terms"][0].get("reduction") == "sum"
        self.wanted = (loss or {}).get("accumulates") or {}
        passes = facts.get("backward_passes")
        if not facts.get("optimizer_steps") or not passes or self.factor is None:
            self.looked = False
            return
        if len(facts.get("optimizers") or ()) != 1 or facts["optimizers"][0].get("class") == "LBFGS":
            self.lacks("the backward passes do not belong to the steps of one optimizer")
            return
        if facts.get("gradients_were_reset", True) is None:
            self.lacks("the optimizer computes gradients in a closure, as often as it wants")
            return
        # The passes of steps that a scaler skipped are counted with those of the next step.
        before, self.passes = self.passes, passes
        scale_before, self.scale = self.scale, facts.get("loss_scale")
        self.most_passes = max(self.most_passes, passes)
        yield from self._others(seen, passes, passes == before)
        # Losses of one forward pass are those of several tasks; after a reset, nothing is added up.
        is_another_use = facts.get("passes_share_graph") or facts.get("reset_between_passes")
        is_summed = passes >= LEAST_PASSES and abs(self.factor) > 0.75 and not is_another_use
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

    def _others(self, seen: ObservedStep, passes: int, is_steady: bool) -> Iterator[Finding]:
        """Judge passes whose losses are divided by their number, as they should be or once more."""
        factor = math.nan if self.is_sum else abs(self.factor or 1.0)
        is_twice = passes >= LEAST_PASSES and abs(factor * passes**2 - 1) < EXACT
        is_once = passes >= LEAST_PASSES and abs(factor * passes - 1) < EXACT
        now = {
            "twice": is_twice,
            "reset": is_once and seen.facts.get("reset_between_passes") is True,
            "too few": self.most_passes < self.wanted.get("number", 0),
        }
        self.others = {
            name: [*self.others.get(name, ()), seen.step][:REPEATS]
            for name, is_so in now.items()
            if is_so and (is_steady or name not in self.others)
        }
        for name, steps in self.others.items():
            if len(steps) < REPEATS:
                continue
            if name == "too few":
                yield self._too_few(passes, steps[0])
                continue
            is_divided_twice = name == "twice"
            what = (
                f"is divided by {passes} twice, and so multiplied by {factor:.3g}"
                if is_divided_twice
                else "is divided by it, but gradients are reset between them: only the last one counts"
            )
            yield self.finding(
                f"{passes} backward passes make one step of the optimizer, and the loss {what}",
                since=steps[0],
                tensor="loss",
                statistic="backward passes times the factor of the loss",
                value=passes * factor if is_divided_twice else 1 / passes,
                limit=1.0,
                title=(
                    "Accumulated losses are divided twice"
                    if is_divided_twice
                    else "Gradients are reset while they accumulate"
                ),
                why=(
                    f"{passes} passes times {factor:.3g} is {passes * factor:.3g}; a mean would have 1"
                    if is_divided_twice
                    else f"1 of {passes} batches has an effect on the step",
                ),
                advice=(_ONCE if is_divided_twice else _RESET,),
            )

    def _too_few(self, passes: int, since: int) -> Finding:
        name, number = self.wanted["name"], self.wanted["number"]
        after = "each backward pass" if passes == 1 else f"{passes} backward passes"
        return self.finding(
            f"The loss is divided by {name}, which is {number}, and the optimizer makes a step after {after}",
            since=since,
            tensor="loss",
            statistic="backward passes divided by the number of accumulated losses",
            value=passes / number,
            limit=1.0,
            title=(
                "The loss is divided, but nothing accumulates"
                if passes == 1
                else "Fewer losses accumulate than they are divided by"
            ),
            why=(f"{passes} divided by {number} is {passes / number:.3g}; a mean would have 1",),
            advice=(
                f"Call optimizer.step() and optimizer.zero_grad() after every {number} batches only, as if "
                f"(number + 1) % {name} == 0 says, or do not divide the loss.",
                "With Accelerate, write the body of the loop within accelerator.accumulate(model).",
            ),
        )
