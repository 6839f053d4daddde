"""Modules whose mode is not that of the loop: evaluated in training mode, or trained in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice, DefaultRule, Retired
from smdebug_default_rules.tensors import Modules


class ModuleModes(DefaultRule):
    """Fires when dropout or batch statistics are in the mode that the step is not."""

    cause = "mode mismatch"
    needs = "it is not known whether modules were in training mode"
    modes = BOTH
    advice: ClassVar[Advice] = {
        "mode mismatch": (
            "Call model.eval() before an evaluation and model.train() before training continues.",
            "Give F.dropout the argument training=self.training, or use nn.Dropout.",
        )
    }
    _TITLES: ClassVar[dict[str, str]] = {
        "trained": "The model is trained in evaluation mode",
        "evaluated": "The model is evaluated in training mode",
        "others": "A layer stays in training mode in evaluation",
        "dropout": "Dropout is active in evaluation",
    }
    _ADVICE: ClassVar[dict[str, str]] = {
        "trained": "Call model.train() before the training loop, and again after each evaluation.",
        "evaluated": "Call model.eval() before the evaluation, and model.train() after it.",
        "others": "Look for a call of .train() on this layer after model.eval(), and call model.eval() last.",
        "dropout": "Give F.dropout the argument training=self.training, or use nn.Dropout.",
    }

    has_trained = Retired()

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: dict[str, int] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        facts = seen.facts
        if "training" not in facts:
            self.looked = False
            return
        modules = Modules.of(seen)
        dependent = [name for name, depends in modules.depends_on_mode.items() if depends]
        if not dependent and (facts["training"] or facts.get("gradients") is not False):
            self.lacks("no module, such as dropout or batch normalisation, depends on the mode")
        steps = bool(facts.get("optimizer_steps"))
        found = dict(self._mismatches(seen, dependent, steps))
        self.since = {key: self.since.get(key, seen.step) for key in found}
        for key, (name, message) in found.items():
            yield self.finding(
                message,
                since=self.since[key],
                tensor=name,
                statistic="training",
                value=bool(facts["training"]),
                limit=not facts["training"],
                title=self._TITLES[key],
                why=_numbers(key, facts, modules, dependent),
                advice=(self._ADVICE[key],),
            )

    def _mismatches(
        self, seen: ObservedStep, dependent: list[str], steps: bool
    ) -> Iterator[tuple[str, tuple[str, str]]]:
        facts, modules = seen.facts, Modules.of(seen)
        training, gradients = facts["training"], facts.get("gradients")
        # Without gradients it is a teacher that was called, and another model is trained.
        if steps and not training and dependent and gradients is not False:
            yield (
                "trained",
                (
                    dependent[0],
                    "The optimizer steps while the model is in evaluation mode: "
                    f"{modules.described(dependent[0])} behaves as in evaluation",
                ),
            )
        if training and gradients is False and dependent and not steps and _has_loss(seen):
            yield (
                "evaluated",
                (
                    dependent[0],
                    "A loss was computed without gradients while the model "
                    f"was in training mode: {modules.described(dependent[0])} "
                    "behaves as in training, so that the evaluation is wrong",
                ),
            )
        if training or gradients is not False:
            return
        others = facts.get("other_mode") or []
        if others:
            name = str(others[0])
            yield (
                "others",
                (
                    name,
                    f"The model is in evaluation mode, but {modules.described(name)} is in training mode",
                ),
            )
        rate = facts.get("dropout_in_evaluation")
        if rate and not others:
            name = _after_dropout(seen)
            yield (
                "dropout",
                (
                    name,
                    f"Dropout of {rate:g} was applied although the model is "
                    "in evaluation mode: a function such as F.dropout was "
                    f"called without training=self.training, in {modules.root}",
                ),
            )


def _numbers(key: str, facts: Mapping[str, Any], modules: Modules, dependent: list[str]) -> tuple[str, ...]:
    """How much of the model behaves differently."""
    if key == "dropout":
        return (f"{float(facts['dropout_in_evaluation']):.0%} of the values are set to 0 in evaluation",)
    if key == "others":
        others = len(facts.get("other_mode") or ())
        return (f"{others} of {len(modules.classes)} modules are in training mode",)
    kinds = ", ".join(sorted({modules.classes.get(name, "") for name in dependent})[:3])
    return (f"{len(dependent)} of {len(modules.classes)} modules depend on the mode: {kinds}",)


def _has_loss(seen: ObservedStep) -> bool:
    return bool(np.any(seen.series("loss")[:, 0] == seen.step))


def _after_dropout(seen: ObservedStep) -> str:
    """The model's output: dropout as a function has no name of its own."""
    return Modules.of(seen).output
