"""A loss scale that collapses: gradients overflow again and again, and steps are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule, Retired

LOWEST = 2.0
LOW = 1024.0
SKIPPED = 6


class LossScale(DefaultRule):
    """Fires when the scaler of mixed precision falls below 2, or skips many steps in a row."""

    cause = "scaler"
    advice: ClassVar[Advice] = {
        "scaler": (
            "Look for the layer or the loss that overflows in float16, and compute it in float32.",
            "Use bfloat16, which needs no loss scale, or scale the loss itself down.",
        )
    }

    skipped_since = Retired()

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.skipped_count = 0
        self.first_scale: float | None = None
        self.fell_since: int | None = None

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        scale = seen.facts.get("loss_scale")
        if not isinstance(scale, int | float):
            self.lacks("no gradient scaler was used")
            return
        self.first_scale = scale if self.first_scale is None else self.first_scale
        if scale < self.first_scale and self.fell_since is None:
            self.fell_since = seen.step
        if seen.facts.get("optimizer_steps"):
            self.skipped_count = 0
        else:
            self.skipped_count += 1
        collapsed = scale < LOWEST and self.fell_since is not None
        stuck = self.skipped_count >= SKIPPED and scale < LOW
        if collapsed or stuck:
            course = f"fell from {self.first_scale:g} to" if scale < self.first_scale else "is"
            skipped = f", and the last {self.skipped_count} saved steps were skipped"
            yield self.finding(
                f"The loss scale {course} {scale:g}" + (skipped if self.skipped_count > 1 else ""),
                since=self.fell_since if self.fell_since is not None else seen.step,
                tensor="loss_scale",
                statistic="loss scale",
                value=scale,
                limit=LOWEST if collapsed else LOW,
                title="The loss scale collapses" if collapsed else "Steps are skipped again and again",
                why=(f"Scale {scale:g}, {self.first_scale:g} at first, where {LOW:g} and more are usual",),
            )
