"""Modules whose mode is not that of the loop: evaluated in training mode, or trained in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice, DefaultRule, Retired
from smdebug_default_rules.layers import predictions
from smdebug_default_rules.tensors import Modules, Parameters

LEAST_STEPS, LEAST_SEEN = 30, 5
"""A model whose values are the same over so many steps, and at so many saved ones, is not trained."""
LEAST_STEPS_OF_A_COPY = 1000
"""A model of the trained one's shapes may be a target network, which follows after so many steps at most."""


class ModuleModes(DefaultRule):
    """Fires when dropout or batch statistics are in the mode that the step is not.

    Also when a classifier in training mode predicts the same rows between its steps, as a validation does,
    and when a model that is not trained drops values of what another is trained with, as a teacher.
    """

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
        "predicted": "The model is evaluated in training mode",
        "others": "A layer stays in training mode in evaluation",
        "dropout": "Dropout is active in evaluation",
        "teacher": "A model that is not trained drops values",
    }
    _ADVICE: ClassVar[dict[str, str]] = {
        "trained": "Call model.train() before the training loop, and again after each evaluation.",
        "evaluated": "Call model.eval() before the evaluation, and model.train() after it.",
        "predicted": "Call model.eval() before the predictions, and model.train() after them.",
        "others": "Look for a call of .train() on this layer after model.eval(), and call model.eval() last.",
        "dropout": "Give F.dropout the argument training=self.training, or use nn.Dropout.",
        "teacher": "Call .eval() on it before the training loop, after any .train() of a module around it.",
    }

    has_trained = Retired()

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: dict[str, int] = {}
        self.teacher: dict[str, Any] = {}
        """The model beside the trained one that drops values, and since when it is the same."""
        self.evaluated = -1
        """The last call of an evaluation that had a loss, by its number."""
        self.predicted = predictions.empty()
        """What is known of rows that are asked for again and again, without a loss."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        facts = seen.facts
        has_loss = self._has_loss(seen)
        number_of = getattr(self.base_trial, "mode_step", None)
        predictions.add(self.predicted, seen, number_of(seen.step) if number_of else None)
        if seen.mode in TRAINING:
            yield from self._of_a_teacher(seen)
        if "training" not in facts:
            self.looked = False
            return
        modules = Modules.of(seen)
        dependent = [name for name, depends in modules.depends_on_mode.items() if depends]
        if not dependent and (facts["training"] or facts.get("gradients") is not False):
            self.lacks("no module, such as dropout or batch normalisation, depends on the mode")
        steps = bool(facts.get("optimizer_steps"))
        found = dict(self._mismatches(seen, dependent, steps=steps, has_loss=has_loss))
        since = self.predicted["since"] if "predicted" in found else seen.step
        self.since = {key: self.since.get(key, since) for key in found}
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

    def _of_a_teacher(self, seen: ObservedStep) -> Iterator[Finding]:
        """What a model returns while it drops values differs from call to call, and teaches noise."""
        teacher = seen.facts.get("teacher")
        if not isinstance(teacher, Mapping):
            return
        kept = {key: teacher.get(key) for key in ("model", "module", "values")}
        if kept != {key: self.teacher.get(key) for key in kept}:
            self.teacher = {**kept, "since": seen.step, "seen": 0}
        if teacher.get("calls") != 1 or not _is_of_the_batch(teacher, seen.facts):
            self.teacher["seen"] = 0  # it is asked several times on purpose, or makes the inputs of the model
            return
        self.teacher["seen"] += 1
        steps = seen.step - self.teacher["since"]
        least = LEAST_STEPS_OF_A_COPY if teacher.get("is_copy") else LEAST_STEPS
        if steps < least or self.teacher["seen"] < LEAST_SEEN:
            return
        name = ".".join(part for part in (str(kept["model"]), str(kept["module"])) if part)
        rate = float(teacher["rate"])
        yield self.finding(
            f"{kept['model']} gets the batches of the trained model and is not trained itself, but {name} "
            f"drops {rate:.0%} of its values: what it returns for one row differs from call to call",
            since=self.teacher["since"],
            tensor=name,
            statistic="dropout",
            value=rate,
            limit=0.0,
            title=self._TITLES["teacher"],
            why=(f"Dropout of {rate:g} is active, and its weights have not changed for {steps} steps",),
            advice=(self._ADVICE["teacher"],),
        )

    def _has_loss(self, seen: ObservedStep) -> bool:
        """Whether the first call of an evaluation had a loss.

        A model that is called several times before there is one draws samples, or teaches another model.
        """
        rows = seen.series("loss")
        evaluated = rows[rows[:, 1] == ModeKeys.EVAL.value]
        earlier = evaluated[evaluated[:, 0] < seen.step, 2]
        before = int(earlier[-1]) if len(earlier) else self.evaluated
        if len(evaluated):
            self.evaluated = int(evaluated[-1, 2])
        if seen.mode is not ModeKeys.EVAL:
            return bool(np.any(rows[:, 0] == seen.step))
        now = evaluated[evaluated[:, 0] == seen.step, 2]
        return bool(len(now) and now[0] - before <= 1 and (len(now) == 1 or np.diff(now).min() <= 1))

    def _mismatches(
        self, seen: ObservedStep, dependent: list[str], *, steps: bool, has_loss: bool
    ) -> Iterator[tuple[str, tuple[str, str]]]:
        facts, modules = seen.facts, Modules.of(seen)
        training, gradients = facts["training"], facts.get("gradients")
        # Without gradients it is a teacher that was called, and another model is trained.
        if steps and not training and dependent and gradients is not False and _learns(seen):
            yield (
                "trained",
                (
                    dependent[0],
                    "The optimizer steps while the model is in evaluation mode: "
                    f"{modules.described(dependent[0])} behaves as in evaluation",
                ),
            )
        # With a backward pass the loss is that of another model, which this one teaches.
        is_evaluated = not steps and facts.get("loss") is None and has_loss
        if training and gradients is False and dependent and is_evaluated:
            yield (
                "evaluated",
                (
                    dependent[0],
                    "A loss was computed without gradients while the model "
                    f"was in training mode: {modules.described(dependent[0])} "
                    "behaves as in training, so that the evaluation is wrong",
                ),
            )
        elif (
            training
            and gradients is False
            and predictions.are_found(self.predicted, seen, modules, dependent)
        ):
            yield (
                "predicted",
                (
                    dependent[0],
                    f"The same {facts['shapes'][0][0]} rows were predicted {self.predicted['times']} times "
                    f"while the model was in training mode: {modules.described(dependent[0])} behaves as in "
                    "training, so that what is measured of the predictions is wrong",
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


def _is_of_the_batch(teacher: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether the model is given rows of the form that the trained one is given."""
    shape = list(teacher.get("shape") or ())
    return len(shape) > 1 and any(list(given[1:]) == shape[1:] for given in facts.get("shapes") or ())


def _numbers(key: str, facts: Mapping[str, Any], modules: Modules, dependent: list[str]) -> tuple[str, ...]:
    """How much of the model behaves differently."""
    if key == "dropout":
        return (f"{float(facts['dropout_in_evaluation']):.0%} of the values are set to 0 in evaluation",)
    if key == "others":
        others = len(facts.get("other_mode") or ())
        return (f"{others} of {len(modules.classes)} modules are in training mode",)
    kinds = ", ".join(sorted({modules.classes.get(name, "") for name in dependent})[:3])
    return (f"{len(dependent)} of {len(modules.classes)} modules depend on the mode: {kinds}",)


def _learns(seen: ObservedStep) -> bool:
    """Whether any parameter of the model has a gradient or an update, as far as these are known."""
    table, root = Parameters.of(seen), Modules.of(seen).root
    if table is None:
        return True
    # A model whose layers are named by another that has it begins their names with a point.
    own = np.array([name.startswith((f"{root}_", f"{root}.")) for name in table.names], bool)
    moves: Any = table.has_gradient | (table.update("abs_mean") > 0)
    return bool(moves[own].any() or not own.any())


def _after_dropout(seen: ObservedStep) -> str:
    """The model's output: dropout as a function has no name of its own."""
    return Modules.of(seen).output
