"""Gradients of earlier steps that are added to those of later ones, because nothing resets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_TWICE = 3
"""Once or twice, a step may have been made again on purpose."""
_TWICE = (
    "Call step() once for each backward(): look for a second call in the loop, in a function that it calls, "
    "or in a trainer that steps by itself."
)


class GradientsNotReset(DefaultRule):
    """Fires when an optimizer steps although its gradients were never seen empty since its last step.

    Also if it steps twice on the same gradients.
    """

    cause = "gradients not reset"
    needs = "no optimizer step with its backward passes was saved"
    advice: ClassVar[Advice] = {
        "gradients not reset": (
            "Call optimizer.zero_grad() once per optimizer step, before backward().",
            "If the gradients of several optimizers mix, reset those of each before its own backward pass.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: int | None = None
        self.used_at: list[int] = []
        """The first saved steps in a row at which gradients were used twice."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        facts = seen.facts
        if facts.get("gradients_were_used"):
            yield from self._used_twice(seen)
            return
        if facts.get("optimizer_steps"):
            self.used_at = []
        was_reset = facts.get("gradients_were_reset")
        if was_reset is None or not facts.get("backward_passes"):
            self.looked = False
            return
        if was_reset:
            self.since = None
            return
        self.since = seen.step if self.since is None else self.since
        names = [optimizer.get("class", "?") for optimizer in facts.get("optimizers") or ()]
        yield self.finding(
            "The gradients were not reset between two steps of the optimizer "
            f"({', '.join(names)}): each "
            "backward pass adds to those of earlier steps",
            since=self.since,
            statistic="gradients reset",
            value=False,
            limit=True,
            why=(
                f"Calls at step {seen.step}: {int(facts['backward_passes'])} of backward(), "
                f"{int(facts.get('optimizer_steps') or 0)} of step(), and no gradient was empty before",
            ),
            advice=self.advice["gradients not reset"][: 1 if len(names) < 2 else 2][::-1],
        )

    def _used_twice(self, seen: ObservedStep) -> Iterator[Finding]:
        self.used_at = [*self.used_at, seen.step][:LEAST_TWICE]
        if len(self.used_at) < LEAST_TWICE:
            return
        yield self.finding(
            "The optimizer steps twice on the same gradients, which nothing writes between: each batch "
            "counts twice, and momentum more than that",
            since=self.used_at[0],
            statistic="gradients used",
            value=True,
            limit=False,
            title="The optimizer steps twice",
            why=(f"2 calls of step() for 1 of backward() at {LEAST_TWICE} saved steps in a row",),
            advice=(_TWICE,),
        )
