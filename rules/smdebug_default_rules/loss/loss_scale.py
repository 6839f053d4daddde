"""A loss scale that collapses, or that gradients still have when they are clipped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded, where
from smdebug_default_rules.base import Advice, DefaultRule, Retired
from smdebug_default_rules.tensors import Parameters

LOWEST = 2.0
LOW = 1024.0
SKIPPED = 6


SMALLEST = 2.0**-14
"""Below this, numbers of float16 have fewer digits, until they are 0 below 2**-24."""
MOST_OF_WEIGHTS, SOME_ZEROS = 0.5, 0.01
LEAST_STEPS = 3
CLIPPED_STEPS, ALIKE = 5, 1e-3
"""Norms within this share of each other, at so many saved steps, were clipped."""
TINY = 0.01
"""Nobody clips to less than this on purpose."""
_UNSCALE = (
    "Call scaler.unscale_(optimizer) after backward() and before clip_grad_norm_(), so that the limit is "
    "compared with gradients as they are."
)
_SCALER = (
    "Scale the loss: scaler = torch.amp.GradScaler(), scaler.scale(loss).backward(), scaler.step(optimizer), "
    "scaler.update()."
)
_BFLOAT = "Or use bfloat16, which has the range of float32 and needs no scale."


class LossScale(DefaultRule):
    """Fires when the scaler of mixed precision falls below 2, or skips many steps in a row.

    Also where float16 is used without one and gradients are too small for it, and where gradients are clipped
    while they are scaled, so that next to nothing is left of them.
    """

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
        self.underflow: list[int] = []
        self.norms: list[list[float]] = []
        """The step, the norm of all gradients, and the same times the scale, at the last steps."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        scale = seen.facts.get("loss_scale")
        if not isinstance(scale, int | float):
            yield from self._unscaled(seen)
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
        yield from self._clipped(seen, scale)

    def _clipped(self, seen: ObservedStep, scale: float) -> Iterator[Finding]:
        """Judge norms that are all the same, once they are multiplied by the scale."""
        table = Parameters.of(seen)
        if table is None or not seen.facts.get("optimizer_steps"):
            return
        norm = float(np.nan_to_num(table.gradient_norm))
        scaled = norm * scale
        if any(abs(scaled - other) > ALIKE * scaled for _, _, other in self.norms):
            self.norms = []
        self.norms = [*self.norms[:1], *self.norms[1:][2 - CLIPPED_STEPS :]]
        self.norms.append([seen.step, *rounded((norm, scaled))])
        if (
            len(self.norms) < CLIPPED_STEPS
            or not 0 < norm < TINY
            or not _is_round(scaled, 2)
            or _is_round(norm, 1)
        ):
            return
        yield self.finding(
            f"The norm of all gradients is {norm:.2g} at each step, {scaled:.3g} over the loss scale of "
            f"{scale:g}: they are clipped before they are unscaled",
            since=int(self.norms[0][0]),
            tensor="loss_scale",
            statistic="norm of the gradients",
            value=norm,
            limit=TINY,
            title="Gradients are clipped before they are unscaled",
            why=(
                f"Norm {norm:.2g} at {len(self.norms)} saved steps in a row; times {scale:g}: {scaled:.3g}",
            ),
            advice=(_UNSCALE,),
        )

    def _unscaled(self, seen: ObservedStep) -> Iterator[Finding]:
        """Judge the gradients of a training in float16 that has no scaler."""
        table, factor = Parameters.of(seen), (seen.facts.get("loss") or {}).get("factor") or 1.0
        if seen.facts.get("autocast") != "float16" or table is None or abs(factor) > 1:
            self.lacks("no gradient scaler was used")
            return
        if not seen.facts.get("optimizer_steps"):
            return
        weights = table.is_weight & ~table.is_frozen & table.has_gradient
        largest = table.largest_gradient
        zeros = table.gradient("zeros") / np.maximum(table.gradient("count"), 1)
        small = where(weights & (largest < SMALLEST) & (zeros > SOME_ZEROS))
        if len(small) <= MOST_OF_WEIGHTS * np.count_nonzero(weights):
            self.underflow = []
            return
        self.underflow = [*self.underflow, seen.step][:LEAST_STEPS]
        if len(self.underflow) < LEAST_STEPS:
            return
        place = max(small, key=lambda at: float(zeros[at]))
        yield self.finding(
            f"Layers compute in float16 without a gradient scaler, and the gradients of {len(small)} of "
            f"{np.count_nonzero(weights)} weights are all below {SMALLEST:.1e}, too small for it: "
            f"{zeros[place]:.0%} of those of {table.names[place]} are 0",
            since=self.underflow[0],
            tensor=table.names[place],
            statistic="largest gradient",
            value=float(largest[place]),
            limit=SMALLEST,
            title="Gradients underflow in float16",
            why=(
                f"{table.names[place]}: {largest[place]:.2g} at most, and {zeros[place]:.0%} are 0; float16 "
                f"loses digits below {SMALLEST:.1e}",
            ),
            advice=(_SCALER, _BFLOAT),
        )


def _is_round(value: float, digits: int) -> bool:
    """Whether that is a number of so many digits, as people write limits."""
    number = value / 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return abs(number - round(number)) < 2 * ALIKE * number
