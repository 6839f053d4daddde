"""Inputs in which the model finds its targets as they are, so that it has only to copy them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss import constant_prediction
from smdebug_default_rules.tensors import Modules

LEAST_STEPS, LEAST_ROWS = 5, 200
COPIED = 0.1
"""Token ids are copied if the loss is below this share of their entropy: some models have to rebuild them."""


_LEAVE_OUT = "Leave that column out of the inputs, or take the targets from a later row if it is a forecast."
_SHIFT_TARGETS = "Shift the targets by one: inputs tokens[:, :-1], targets tokens[:, 1:]."


class RevealedTargets(DefaultRule):
    """Fires when a column of the input is the target, or the tokens of the input are the targets.

    Every row of at least five checked steps has to be equal. Of tokens, the loss must be near 0, too.
    """

    cause = "leaked label"
    needs = "the run does not show whether its inputs contain the targets of its loss"
    advice: ClassVar[Advice] = {
        "leaked label": (
            _LEAVE_OUT,
            f"For a language model, {_SHIFT_TARGETS[0].lower()}{_SHIFT_TARGETS[1:]}",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.place: list[Any] | None = None
        self.steps = self.rows = self.since = 0
        self.targets = constant_prediction.empty()

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss = seen.facts.get("loss") or {}
        terms = loss.get("terms") or []
        if len(terms) != 1 or "value" not in loss:
            self.looked = False
            return
        place = loss.get("revealed_by")
        if place is None or place != self.place:
            self.place, self.steps, self.rows, self.since = place, 0, 0, seen.step
            self.targets = constant_prediction.empty()
        if place is None:
            return
        constant_prediction.add(self.targets, seen, most=1)
        self.steps, self.rows = self.steps + 1, self.rows + int(terms[0].get("rows") or 0)
        if self.steps < LEAST_STEPS or self.rows < LEAST_ROWS:
            self.lacks("the inputs were equal to the targets at too few steps so far")
            return
        yield from self._judged(seen, *place)

    def _judged(self, seen: ObservedStep, number: int, what: int | str) -> Iterator[Finding]:
        tensor = Modules.of(seen).input
        tensor = f"{tensor.removesuffix('0')}{number}" if tensor.endswith("_0") else tensor
        equal = f"at all {self.rows} rows of {self.steps} checked steps"
        if isinstance(what, int):
            yield self._found(f"Column {what} of the input is the target, {equal}", tensor, self.rows)
            return
        samples = self.targets["samples"]
        if not samples:
            return
        _, value, constant, _ = samples[-1]
        if value >= COPIED * constant:
            return
        where = (
            "that the model is given at the same place" if what == "input" else "before, which it is given"
        )
        yield self._found(
            f"Each target is the token {where}, {equal}: the loss is {value:.3g}, where guessing by "
            f"frequency gives {constant:.3g}",
            tensor,
            value,
            COPIED * constant,
        )

    def _found(self, message: str, tensor: str, value: float, limit: float | None = None) -> Finding:
        statistic = "rows equal to the target" if limit is None else "loss of copying"
        is_column = limit is None
        return self.finding(
            message,
            since=self.since,
            tensor=tensor,
            statistic=statistic,
            value=value,
            limit=limit,
            title="An input is the target" if is_column else "The targets are tokens that the model is given",
            why=(f"{self.rows} of {self.rows} rows at {self.steps} saved steps are equal",),
            advice=(_LEAVE_OUT if is_column else _SHIFT_TARGETS,),
        )
