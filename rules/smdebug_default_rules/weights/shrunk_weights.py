"""Weights that the regularisation shrinks to nearly nothing, while the loss does not fall."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss_history import finite_losses, level
from smdebug_default_rules.tensors import Parameters, first_sizes, usual_sizes
from smdebug_default_rules.weights import balanced_decay

SHRUNK = 0.05
"""A weight below this share of what it was at the first saved step has shrunk."""
NO_BETTER = 0.97
LEAST_STEPS = 3
LEAST_WEIGHTS = 2
MOST_NAMED = 3


class ShrunkWeights(DefaultRule):
    """Fires when most weights are below 5 % of their first size, and the loss is no better than at first.

    It fires, too, when a weight decay of at least 0.1 has cancelled the gradients of all weights for a while.
    """

    cause = "weight decay"
    follows_scalars = True
    needs = "no statistics of parameters were saved"
    advice: ClassVar[Advice] = {
        "weight decay": (
            "Lower the weight decay: 1e-5 to 1e-3 for SGD and Adam, 1e-2 to 1e-1 for AdamW, are usual.",
            "If the loss has a penalty on the weights, compare its size with that of the loss itself.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self._begin()

    def _begin(self) -> None:
        """Keep nothing yet."""
        self.first: dict[str, float] = {}
        self.first_step = 0
        self.steps = 0
        self.balanced: list[int] = []
        """The saved steps in a row at which the decay has cancelled the gradients."""
        self.losses = loss_history.empty()

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        if is_another := self.is_another_training(seen):
            self._begin()
            seen.shared_by_layout.pop("first sizes of weights", None)
        loss_history.extend(self.losses, *finite_losses(seen, is_another=is_another))
        table = Parameters.of(seen)
        if table is None:
            self.looked = False
            return
        yield from self._balanced(seen, table)
        rms = table.column("rms")
        if not self.first:
            usual = table.is_weight & table.present & ~table.is_frozen & (rms > usual_sizes(table))
            self.first = first_sizes(table, usual)
            self.first_step = seen.step
            self.lacks("there is no later step to compare the first weights with")
            return
        if len(self.first) < LEAST_WEIGHTS:
            self.lacks(f"fewer than {LEAST_WEIGHTS} layers have weights of the usual size")
            return
        first = seen.shared_by_layout.get("first sizes of weights")
        if first is None:
            first = np.array([self.first.get(name, np.nan) for name in table.names])
            seen.shared_by_layout["first sizes of weights"] = first
        shares = rms / first
        shrunk = where(shares < SHRUNK)
        if 2 * len(shrunk) <= len(self.first):
            self.steps = 0
            return
        self.steps += 1
        before, now = level(self.losses["first"]), level(self.losses["last"][-10:])
        if self.steps < LEAST_STEPS or not now > NO_BETTER * before:
            return
        for place in sorted(shrunk, key=lambda weight: shares[weight])[:MOST_NAMED]:
            name, share = table.names[place], float(shares[place])
            yield self.finding(
                f"The weights of {name} have shrunk to {share:.2g} of their size at "
                f"the first saved step, as have {len(shrunk)} of {len(self.first)} "
                f"layers, and the loss, {before:.4g} at first, is {now:.4g}",
                since=self.first_step,
                tensor=name,
                statistic="share of the first weights",
                value=share,
                limit=SHRUNK,
                why=(
                    f"{name}: root mean square {float(rms[place]):.2g}, and "
                    f"{float(first[place]):.2g} at first",
                ),
                advice=_advice(seen),
            )

    def _balanced(self, seen: ObservedStep, table: Parameters) -> Iterator[Finding]:
        found = balanced_decay.balance(seen, table)
        self.balanced = [*self.balanced, seen.step] if found is not None else []
        count = len(self.balanced)
        if found is None or count < balanced_decay.LEAST_STEPS:
            return
        before, now = level(self.losses["first"]), level(self.losses["last"][-10:])
        is_early = seen.step - self.balanced[0] < balanced_decay.LEAST_APART
        if is_early or not now > balanced_decay.LEAST_LOSS * before:
            return
        yield self.finding(
            f"The weight decay of {found.factor:g} cancels the gradients of all {found.weights} weights, "
            f"such as {found.name}: the loss stays at {now:.4g}, and was {before:.4g} at first",
            since=self.balanced[0],
            tensor=found.name,
            statistic="gradient by decay",
            value=found.gradient / found.decay,
            limit=balanced_decay.MOST_RATIO,
            title=balanced_decay.TITLE,
            why=(
                f"{found.name}: root mean square {found.gradient:.2g} of the gradient, and {found.decay:.2g} "
                "of the decay",
                f"At {count} saved steps in a row",
            ),
            advice=_advice(seen),
        )


def _advice(seen: ObservedStep) -> tuple[str, ...]:
    """What to try: the weight decay is named where the optimizer has one."""
    decays = [
        float(group["weight_decay"])
        for optimizer in seen.facts.get("optimizers") or ()
        for group in optimizer.get("groups") or ()
        if (group.get("weight_decay") or 0) > 0
    ]
    lower, penalty = ShrunkWeights.advice["weight decay"]
    if not decays:
        return lower, penalty
    return (lower.replace("Lower the weight decay:", f"Lower the weight decay of {max(decays):g}:"), penalty)
