"""A learning rate that jumped, vanished, or is far too large or small for the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.files.observations import FIRST_LEARNING_RATE, LEARNING_RATES
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.arrays import rounded
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss_history import level, new_losses
from smdebug_default_rules.tensors import Parameters, usual_sizes
from smdebug_default_rules.weights import resumes, warm_ups, waves

JUMP = 3.5
STEADY_STEPS = 20
"""A rate that was the same for this many steps is past its warm-up."""
VANISHED = 1e-4
"""Below this share of its largest value, the rate has vanished."""
TOO_SMALL, TOO_LARGE = 1e-5, 0.1
"""Root mean square of an update over that of the weights."""
OVERSHOT = 0.5
"""First steps that change most weights by more than this share of their size destroy the initial weights."""
LEAST_PATH, LONG = 0.01, 150
"""After `LONG` steps that together cannot have moved the weights by this share, they were too small."""
LEARNT = 0.8
"""A cross entropy below this share of guessing has been learnt: its steps may be small.

A loss that was below this share of its first value has been learnt with the steps of the start.
"""
FIRST_RATIOS, FIRST_STEPS = 10, 30
RISEN = 2.0
NO_BETTER, NO_BETTER_AT_ALL = 0.9, 0.97
"""A loss above these shares of what it was at first has hardly fallen, or not at all."""
STEPS_AT_ZERO = 50
"""A warm-up may begin at a rate of zero, and leaves it before so many steps."""


CLIPPED, CLIPPED_STEPS = 1e-3, 5
"""Norms of the gradients within this share of each other, at so many saved steps, were clipped."""
_SCHEDULE = "Check the schedule: it may be stepped per batch instead of per epoch, or set in two places."
_TOO_SHORT = (
    "Check the length of the schedule, such as T_max or total_steps: it ends long before the training does, "
    "or it is stepped per batch where it counts epochs."
)
_WARM_UP = "Look at the warm-up: an integer division such as step // warmup_steps is 0 until it ends."
_CLIP = "Raise the limit of the clipping, such as clip_grad_norm_(model.parameters(), 1.0)."
_WANTED = 1e-3
"""Updates of a thousandth of the weights are usual."""


_UNSEEN = {"largest": 0.0, "rate": math.nan, "since": 0, "first": None, "low": None, "up": None}
"""What is kept of a rate before it was seen."""


class LearningRate(DefaultRule):
    """Fires when a rate jumps, vanishes early, or gives updates far out of proportion to the weights.

    And it fires for a warm-up that counts epochs, so that it would last many times as long as the training,
    for a cosine schedule that is so much shorter than the training that the rate swings up and down, and
    where a training goes on from a checkpoint without the moments of its optimizer or its schedule.
    """

    cause = "learning rate"
    follows_scalars = True
    needs = "neither a learning rate nor statistics of parameters were saved"
    advice: ClassVar[Advice] = {
        "learning rate": (
            _SCHEDULE,
            "Choose a rate at which updates are about a thousandth of the "
            "weights: 1e-3 for Adam, 1e-2 to 1e-1 for SGD, are usual starts.",
        ),
        "clipping": (_CLIP,),
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.course: dict[str, Any] | None = None
        self.resumed: list[Any] = []
        """What the newest training has lost when it went on from weights of the one before."""
        self._begin()

    def _begin(self) -> None:
        """Keep nothing yet."""
        self.groups: dict[str, dict[str, Any]] = {}
        self.jumps: dict[str, list[Any]] = {}
        self.ratios: list[float] = []
        self.overshot = 0.0
        self.classes = 0
        self.first: int | None = None
        self.losses = loss_history.empty()
        self.lowest: float | None = None
        self.norm_steps, self.least_norm, self.largest_norm = 0, math.inf, 0.0

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        self._follow(seen)
        if is_another := self.is_another_training(seen):
            self._begin()
        loss_history.extend(self.losses, *new_losses(seen, is_another=is_another))
        self._note_lowest()
        for name in seen.series_names:
            if name.startswith(LEARNING_RATES):
                yield from self._followed(name, seen)
        sees_steps = bool(seen.facts.get("optimizer_steps")) and Parameters.of(seen) is not None
        self.looked = bool(self.groups) or sees_steps
        yield from self._never_warmed(seen)
        if self.resumed:
            yield self.finding(**resumes.said(resumes.Resumed(*self.resumed)))
        yield from self._proportion(seen)

    def _follow(self, seen: ObservedStep) -> None:
        """Judge a training that goes on from weights that were loaded."""
        if (now := resumes.observed(seen)) is not None:
            if self.course is not None and self.course["number"] != now["number"]:
                self.resumed = [*(resumes.lost(self.course, now, self.losses["last"]) or ())]
            self.course = resumes.followed(self.course, now)

    def _never_warmed(self, seen: ObservedStep) -> Iterator[Finding]:
        """Judge a training whose rates have all been 0 since it began."""
        firsts = [group["first"] for group in self.groups.values() if group["first"] is not None]
        if not firsts or not seen.facts.get("optimizer_steps"):
            return
        steps = seen.step - min(firsts)
        if steps < STEPS_AT_ZERO or any(group["largest"] > 0 for group in self.groups.values()):
            return
        yield self.finding(
            f"The learning rate has been 0 for {steps} steps, since the training began: nothing can change",
            since=min(firsts),
            tensor=next(iter(self.groups)),
            statistic="learning rate",
            value=0.0,
            limit="> 0",
            title="The learning rate is 0",
            why=(f"0 at all {steps} steps so far; a warm-up leaves 0 within {STEPS_AT_ZERO}",),
            advice=(_WARM_UP,),
        )

    def _followed(self, name: str, seen: ObservedStep) -> Iterator[Finding]:
        group = self.groups.setdefault(name, dict(_UNSEEN))
        for step, _, _, rate in seen.series(name).tolist():
            if not math.isfinite(rate) or rate == group["rate"]:
                continue
            steady = step - group["since"] if group["first"] is not None else 0
            if group["up"] is not None and rate <= group["largest"] * 1.01:
                group["up"] = None
            if steady >= STEADY_STEPS and rate > JUMP * group["largest"] > 0:
                times = rate / group["rate"] if group["rate"] else math.inf
                group["up"] = [int(step), times, group["rate"], rate]
                yield self._jumped(name, group["up"])
            elif group["up"] is None:
                group["largest"] = max(group["largest"], rate)
            group["first"] = int(step) if group["first"] is None else group["first"]
            group["rate"], group["since"] = rate, step
            group["began"] = warm_ups.follow(group.get("began") or [], step, rate)
            group["waves"] = waves.follow(group.get("waves"), int(step), rate)
            is_low = 0 <= rate < VANISHED * group["largest"]
            group["low"] = (group["low"] or int(step)) if is_low else None
        if group["up"] is not None and group["up"][0] < seen.series(name)[:1, 0].min(initial=math.inf):
            yield self._jumped(name, group["up"])
        yield from self._vanished(name, group, seen)
        yield from self._endless(name, group, seen)
        if (swings := waves.found(group.get("waves"))) is not None:
            yield self.finding(**waves.said(swings, _group(name)), tensor=name)

    def _endless(self, name: str, group: dict[str, Any], seen: ObservedStep) -> Iterator[Finding]:
        """Judge a warm-up that is stepped once per epoch and was meant to count steps."""
        asked = warm_ups.asked_rate(seen.facts, name.removeprefix(LEARNING_RATES))
        began, passes = group.get("began") or [], int(seen.facts.get("backward_passes") or 1)
        found = warm_ups.endless(began, asked, seen.step, passes)
        if found is not None:
            said = warm_ups.said(found, began[0][0], group["rate"], seen.step, _group(name))
            yield self.finding(**said, tensor=name)

    def _jumped(self, name: str, jump: list[Any]) -> Finding:
        step, times, before, after = jump
        return self.finding(
            f"The learning rate {_group(name)} rose from {before:.3g} "
            f"to {after:.3g} at step {step}: {times:.3g} times",
            since=step,
            tensor=name,
            statistic="times the rate before",
            value=times,
            limit=JUMP,
            title="The learning rate jumps",
            advice=(
                f"Look for what sets the rate at step {step}: a scheduler that is made "
                "anew or stepped twice, a "
                "resume with another configuration, or a warm-up in the wrong place.",
                _SCHEDULE,
            ),
        )

    def _vanished(self, name: str, group: dict[str, Any], seen: ObservedStep) -> Iterator[Finding]:
        low = group["low"]
        if low is None or seen.step - low < max(30, 0.5 * (low - (group["first"] or 0))):
            return
        share = group["rate"] / group["largest"]
        yield self.finding(
            f"The learning rate {_group(name)} has been {group['rate']:.3g} or so since "
            f"step {low}, {share:.2g} of its largest value: the training can no longer learn",
            since=low,
            tensor=name,
            statistic="share of the largest rate",
            value=share,
            limit=VANISHED,
            title="The learning rate falls to nearly nothing",
            why=(
                f"The largest rate was {group['largest']:.3g}, and {seen.step - low} steps "
                f"had {group['rate']:.3g}",
            ),
            advice=(_TOO_SHORT,),
        )

    def _proportion(self, seen: ObservedStep) -> Iterator[Finding]:
        """Judge the first steps: updates over weights, with what became of the loss."""
        table = Parameters.of(seen)
        if table is None or not seen.facts.get("optimizer_steps"):
            return
        self.first = seen.step if self.first is None else self.first
        apart = seen.facts.get("steps_apart") or 1
        if len(self.ratios) < FIRST_STEPS:
            self._add_ratio(table, apart)
            self._add_norm(table)
        if len(self.ratios) < FIRST_RATIOS or self.losses["count"] < FIRST_RATIOS:
            return
        largest, usual = max(self.ratios), level(self.ratios) / apart
        is_small = largest < max(TOO_SMALL, LEAST_PATH / LONG)
        if not is_small and usual <= TOO_LARGE and self.overshot <= OVERSHOT:
            return
        first, last = level(self.losses["first"][:5]), level(self.losses["last"][-10:])
        untrained = self.losses["first"][0]
        if min(self.losses["first"] + self.losses["last"]) < 0 < max(self.losses["first"]):
            return  # around zero, as that of a policy: such a loss neither rises nor stays where it was
        if 0 < largest < TOO_SMALL and last > 0.95 * first and not self._is_rising():
            yield self._out_of_proportion(
                f"is at most {largest:.2g}: at this learning rate the "
                f"weights hardly change, and the loss stays at {last:.4g}",
                largest,
                TOO_SMALL,
            )
        elif self._cannot_have_moved(seen, largest, first):
            yield self._out_of_proportion(
                f"is at most {largest:.2g}: all {self.losses['count']} steps together have moved the weights "
                f"by {largest * self.losses['count']:.1%} at most, and the loss stays at {last:.4g}",
                largest,
                LEAST_PATH / self.losses["count"],
            )
        elif self.lowest is not None and self.lowest < LEARNT * untrained:
            return  # a later rise of the loss is not due to the first steps
        elif usual > TOO_LARGE and last > RISEN * abs(first):
            yield self._out_of_proportion(
                f"is {usual:.2g}: at this learning rate the loss rose from {first:.4g} to {last:.4g}",
                usual,
                TOO_LARGE,
            )
        elif self.overshot > OVERSHOT and last > NO_BETTER * abs(untrained):
            yield self._out_of_proportion(
                f"reached {self.overshot:.2g} in the first steps: at this learning rate they destroy the "
                f"initial weights, and the loss, {untrained:.4g} at the start, is {last:.4g}",
                self.overshot,
                OVERSHOT,
            )

    def _note_lowest(self) -> None:
        """Note the lowest level of the loss so far."""
        last = self.losses["last"][-FIRST_RATIOS:]
        if len(last) == FIRST_RATIOS:
            now = level(last)
            self.lowest = now if self.lowest is None else min(now, self.lowest)

    def _cannot_have_moved(self, seen: ObservedStep, largest: float, first: float) -> bool:
        """Whether many steps have been too small together to change the weights, and the loss."""
        loss = seen.facts.get("loss") or {}
        terms = loss.get("terms") or []
        self.classes = max([self.classes, *(term.get("classes") or 0 for term in terms)])
        count, last = self.losses["count"], level(self.losses["last"])
        if count < LONG or not 0 < largest * count < LEAST_PATH or len(terms) != 1:
            return False
        chance = loss_history.guessing(loss, self.classes) if self.classes > 1 else 0.0
        return last > NO_BETTER_AT_ALL * first and last > LEARNT * chance and not self._is_rising()

    def _add_ratio(self, table: Parameters, apart: int) -> None:
        """Keep how far the weights have moved, in so many steps; for `overshot` the share of one of them."""
        weights = table.column("rms")
        ratio = table.update("rms") / weights
        chosen = table.is_weight & ~table.is_frozen & np.isfinite(ratio)
        if chosen.any():
            self.ratios += rounded((float(np.max(ratio[chosen])),), 3)
        usual_size = chosen & (weights > usual_sizes(table))
        if usual_size.any() and len(self.ratios) <= FIRST_RATIOS:
            self.overshot = max(self.overshot, float(np.median(ratio[usual_size])) / apart)

    def _add_norm(self, table: Parameters) -> None:
        """Keep how far the norms of all gradients of the model lie apart."""
        if not math.isnan(table.gradient_norm):
            (norm,) = rounded((table.gradient_norm,))
            self.norm_steps += 1
            self.least_norm, self.largest_norm = min(self.least_norm, norm), max(self.largest_norm, norm)

    def _is_clipped(self) -> bool:
        """Whether the gradients of all first steps have the same norm, which nothing but clipping gives."""
        return self.norm_steps >= CLIPPED_STEPS and 0 < self.largest_norm < self.least_norm * (1 + CLIPPED)

    def _out_of_proportion(self, what: str, value: float, limit: float) -> Finding:
        name = next(iter(self.groups), FIRST_LEARNING_RATE)
        rate = float(self.groups[name]["rate"]) if name in self.groups else math.nan
        is_low = value < _WANTED
        times = f"{_WANTED / value:.1g}" if is_low else f"{value / _WANTED:.1g}"
        factor = f"{float(times):g}"
        if is_low and self._is_clipped():
            return self._clipped(rate, value)
        direction = f"{'Raise' if is_low else 'Lower'} the learning rate"
        usual = "updates of about a thousandth of the weights are usual"
        at = "" if math.isnan(rate) else f" from {rate:.3g}"
        steps = (
            f"An update is {value:.2g} of the weights at a learning rate of "
            f"{rate:.3g}; about {_WANTED:g} is usual"
        )
        return self.finding(
            f"The root mean square of an update over that of its weights {what}",
            since=self.first or 0,
            tensor=name,
            statistic="update over weights",
            value=value,
            limit=limit,
            title=f"The learning rate is too {'low' if is_low else 'high'}",
            why=() if math.isnan(rate) else (steps,),
            advice=(f"{direction}{at} by a factor of about {factor}: {usual}.",),
        )

    def _clipped(self, rate: float, value: float) -> Finding:
        kept = "" if math.isnan(rate) else f" The learning rate of {rate:.3g} need not change."
        return self.finding(
            f"The gradients have a norm of {self.largest_norm:.3g} at every step: they are clipped to it, "
            f"and a step changes the weights by {value:.2g} of their size at most",
            since=self.first or 0,
            tensor="gradients",
            statistic="norm of all gradients",
            value=self.largest_norm,
            cause="clipping",
            why=(
                f"The norms of {self.norm_steps} saved steps differ by less than {CLIPPED:.1%}; "
                "clipping at 1 is usual",
            ),
            advice=(_CLIP + kept,),
        )

    def _is_rising(self) -> bool:
        """Whether a rate is in its warm-up."""
        return any(
            group["first"] is not None
            and group["since"] > group["first"]
            and group["rate"] >= group["largest"]
            for group in self.groups.values()
        )


def _group(name: str) -> str:
    optimizer, _, group = name.removeprefix(LEARNING_RATES).partition("/")
    return f"of group {group}" + ("" if optimizer == "0" else f" of optimizer {optimizer}")
