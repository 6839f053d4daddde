"""Parts of the model that should learn and cannot: cut off, left out of the optimizer, or frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.inputs import dropped_conditions
from smdebug_default_rules.rates import newest_rates
from smdebug_default_rules.tensors import Modules, Parameters
from smdebug_default_rules.weights import (
    choices,
    exchanged_means,
    idle_optimizers,
    still_copies,
    untrained_layers,
    zero_gradients,
)
from smdebug_default_rules.weights.fresh_weights import are_fresh, only_scales

LEAST_STEPS = 2


_DETACHED = (
    "Look for .detach(), .item(), torch.no_grad() or a conversion to numpy between these layers and the loss."
)
_OWN = "Give the optimizer model.parameters(), and make it after all layers were added to the model."
_REGISTER = (
    "Make the list an nn.ModuleList (of parameters, an nn.ParameterList), or register each layer with "
    "add_module, before the optimizer is made: model.parameters() has no layers of plain lists."
)
_PARAMETER = (
    "Make the tensor an nn.Parameter before the optimizer is made: model.parameters() has no plain tensors."
)
_NO_LOSS = (
    "Add the loss of this output to the one that backward() is called on, or remove the layers that make it."
)
HEAD_STEPS, HEAD_FAR = 10, 50
"""An output or a router may be trained later: it is reported after so many saved steps, so far apart."""
_FROZEN = (
    "Check the loop or the pattern that sets requires_grad = False: it matches the weights of every layer."
)


class UnreachedParameters(DefaultRule):
    """Fires when the first layers get no gradient, an optimizer lacks a layer, or only scales are trained.

    An optimizer lacks the layers that a model keeps in a plain list, too. And it fires when a model returns
    several results and no loss is computed from one of them, when a router gets no gradient although its
    experts learn, when a table of positions is never used, or one row of it for all tokens, when a table of
    conditions is used for one of them although the model is given all, when all gradients have been exactly
    zero since the training began, when an optimizer never makes a step although its gradients are reset, when
    the first layers are frozen although they look untrained, when a copy of the untrained model that gives
    the targets, or is evaluated in the place of the model, never changes, and when a mean of the weights is
    the weights.
    """

    cause = "no gradient"
    needs = "no optimizer step with statistics of its parameters was saved"
    advice: ClassVar[Advice] = {
        "no gradient": (
            _DETACHED,
            "Give the optimizer model.parameters(), and check the pattern that freezes parameters.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps = 0
        self.first: int | None = None
        self.reached: list[str] = []
        self.hidden = 0
        """How many saved steps in a row have had parameters that no model has and no optimizer."""
        self.routed: list[str] = []
        """The weights with a gradient, among routers: what decays without one is not learnt."""
        self.learnt = 0
        """How many saved steps have had a gradient of a weight."""
        self.flows = False
        """Whether any gradient was not zero so far."""
        self.idle = idle_optimizers.empty()
        """What is known of optimizers that have made no step."""
        self.copy = still_copies.empty()
        """What is known of a copy of the model that gives the targets."""
        self.evaluated_copy = still_copies.empty_of_evaluated()
        self.followed: list[int] = []
        """The saved steps in a row at which a mean of the weights was nearly the weights."""
        self.is_fresh: bool | None = None
        """Whether the model began with weights that nobody had trained."""
        self.untrained = untrained_layers.empty()
        """What is known of first layers that are frozen."""
        self.placed: dict[str, int] = {}
        """At how many saved steps in a row a table of positions was used for a single one."""
        self.conditions: dict[str, dict[str, Any]] = {}
        """What is known of tables of conditions of which a single row is used."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        table = Parameters.of(seen)
        if not seen.facts.get("optimizer_steps") or table is None:
            self.looked = False
            return
        rates = newest_rates(seen)
        # An adapter that begins at zero, and stays so, keeps the gradient from the matrix before it.
        changes = not seen.facts.get("update_skipped") and (not rates or any(rates.values()))
        self.steps += changes
        self.first = seen.step if self.first is None else self.first
        yield from self._unregistered(seen)
        reached = set(self.reached)
        # Large gradients of sparse layout are not measured, but what they change is.
        moved = table.has_gradient | (table.update("abs_mean") > 0)
        new = [table.names[place] for place in where(moved) if table.names[place] not in reached]
        self.reached += new
        reached.update(new)
        self.learnt += bool((table.has_gradient & table.is_weight).any())
        modules = Modules.of(seen)
        self.flows = self.flows or bool(table.has_gradient.any())
        yield from self._zero(seen, table)
        # What was trained for a while may stay as it is, while the model is fitted to other data.
        known = reached if self.learnt >= HEAD_STEPS else set()
        scales = only_scales(seen, table, known)
        if scales:
            yield self._finding(
                scales[0],
                "Nothing but normalisations and biases is trained: "
                f"{len(scales)} weights are frozen, among them {scales[0]} "
                f"of {modules.described(modules.layer_of(scales[0]))}",
                len(scales),
                "All weights are frozen",
                f"{len(scales)} of {int((table.is_weight & table.present).sum())} weights are frozen",
                _FROZEN,
            )
            return
        idle_optimizers.extend(self.idle, seen, table)
        yield from self._idle()
        if mean := exchanged_means.found(self.followed, seen):
            yield self._finding(*mean)
        if self.is_fresh is None:
            self.is_fresh = are_fresh(table, ~table.is_frozen)
        if self.is_fresh:
            still_copies.extend(self.copy, seen, table)
            yield from self._still()
            if (evaluated := still_copies.evaluated(self.evaluated_copy, seen)) is not None:
                advice, title = still_copies.ADVICE_OF_EVALUATED, still_copies.TITLE_OF_EVALUATED
                yield self._finding(
                    evaluated.of, evaluated.message, evaluated.times, title, evaluated.why, *advice
                )
        yield from self._frozen(seen, table)
        yield from self._choices(seen, table, reached)
        yield from self._dropped(seen, table)
        if self.steps < LEAST_STEPS:
            return
        cut = self._cut(table, reached)
        for name in choices.unused_positions(table, reached):
            if name in cut or not self._is_early(seen):
                cut = [other for other in cut if other != name]
                yield self._finding(name, *choices.never_used(name, modules, self.steps))
        weights = int(table.is_weight.sum())
        for name in cut:
            layer = modules.described(modules.layer_of(name))
            yield self._finding(*_cut_off(name, layer, self.steps, len(cut), weights))
        heads = self._heads(seen, table, reached)
        for name, output in heads:
            layer = modules.described(modules.layer_of(name))
            yield self._finding(*_without_loss(name, layer, output, self.steps, len(heads), weights))
        unowned = self._unowned(seen, table)
        for name in unowned:
            layer = modules.described(modules.layer_of(name))
            yield self._finding(*_without_optimizer(name, layer, self.steps, len(unowned), weights))

    def _zero(self, seen: ObservedStep, table: Parameters) -> Iterator[Finding]:
        """Report that no gradient was anything but zero so far, once there are enough steps."""
        far = seen.step - (self.first or 0)
        if self.flows or self.steps < zero_gradients.LEAST_STEPS or far < zero_gradients.LEAST_APART:
            return
        found = zero_gradients.all_zero(table)
        if found is None or zero_gradients.is_constant(seen):
            return
        count, zero = found.gradients, found.zero_weights
        themselves = f", and {zero} weights are zero themselves" if zero > 1 else ""
        yield self._finding(
            found.name,
            f"All {count} gradients were exactly 0 at each of {self.steps} saved steps{themselves}: the "
            "model learns nothing",
            self.steps,
            zero_gradients.TITLE,
            f"{count} of {count} gradients are 0 at {self.steps} saved steps in a row",
            *found.advice,
        )

    def invoke_at_end(self, step: int) -> bool:
        """Report what has not begun: as long as the run goes on, it may later."""
        self.findings = [*self._idle(at_end=True), *self._still(at_end=True)]
        return bool(self.findings)

    def _still(self, *, at_end: bool = False) -> Iterator[Finding]:
        for copy in still_copies.found(self.copy, at_end=at_end):
            yield self._finding(
                copy.of, copy.message, copy.seen, still_copies.TITLE, copy.why, *still_copies.ADVICE
            )

    def _idle(self, *, at_end: bool = False) -> Iterator[Finding]:
        for idle in idle_optimizers.found(self.idle, at_end=at_end):
            yield self._finding(
                idle.weight,
                idle.message,
                idle.steps,
                idle_optimizers.TITLE,
                idle.why,
                *idle_optimizers.ADVICE,
            )

    def _frozen(self, seen: ObservedStep, table: Parameters) -> Iterator[Finding]:
        untrained_layers.extend(self.untrained, seen, table)
        found = untrained_layers.found(self.untrained, table)
        if found is not None:
            title, advice = untrained_layers.TITLE, untrained_layers.ADVICE
            yield self._finding(found.name, found.message, found.steps, title, found.why, *advice)

    def _dropped(self, seen: ObservedStep, table: Parameters) -> Iterator[Finding]:
        dropped_conditions.extend(self.conditions, seen, table)
        for dropped in dropped_conditions.found(self.conditions, seen.step):
            message, title = dropped.message(Modules.of(seen)), dropped_conditions.TITLE
            advice = dropped_conditions.ADVICE
            yield self._finding(dropped.name, message, dropped.steps, title, dropped.why, *advice)

    def _choices(self, seen: ObservedStep, table: Parameters, reached: set[str]) -> Iterator[Finding]:
        """Judge what chooses experts and positions, once there are enough steps."""
        modules, is_early = Modules.of(seen), seen.step - (self.first or 0) < HEAD_FAR
        gradients = {table.names[place] for place in where(table.has_gradient)}
        without = []
        for router in choices.routers(seen, table, reached):
            if router.name in gradients and router.name not in self.routed:
                self.routed.append(router.name)
            without += [router] if router.name not in self.routed else []
        for router in [] if is_early or self.steps < HEAD_STEPS else without:
            yield self._finding(
                router.name,
                router.message(modules, self.steps),
                self.steps,
                "The router gets no gradient",
                router.why(self.steps),
                choices.ROUTED,
            )
        single = {positions.name: positions for positions in choices.single_positions(seen, table)}
        self.placed = {name: self.placed.get(name, 0) + 1 for name in single}
        for name, count in ({} if is_early else self.placed).items():
            if count < HEAD_STEPS:
                continue
            yield self._finding(
                name,
                single[name].message(modules),
                count,
                "All tokens have the same position",
                f"1 of {single[name].rows} positions is used at each of {count} saved steps",
                choices.PLACED,
            )

    def _unregistered(self, seen: ObservedStep) -> Iterator[Finding]:
        found = seen.facts.get("unregistered") or {}
        self.hidden = self.hidden + 1 if found else 0
        if self.hidden < LEAST_STEPS:
            return
        places, count = found["places"], int(found["count"])
        place = str(places[0])
        is_listed = "[" in place
        attribute = place.partition("[")[0]
        yield self._finding(
            attribute,
            f"{_counted(count)} with gradients {'is' if count == 1 else 'are'} in no optimizer, because "
            f"{attribute} is a plain {'container' if is_listed else 'tensor'}, which model.parameters() "
            f"leaves out: {place} never changes",
            count,
            "Layers in a plain list are not trained" if is_listed else "A plain tensor is not trained",
            f"{_counted(count)} of {attribute} at {self.hidden} saved steps in a row, of which the optimizer "
            "has 0",
            _REGISTER if is_listed else _PARAMETER,
        )

    def _finding(self, name: str, message: str, value: int, title: str, why: str, *advice: str) -> Finding:
        return self.finding(
            message,
            since=self.first or 0,
            tensor=name,
            statistic="saved steps",
            value=value,
            title=title,
            why=(why,),
            advice=advice,
        )

    def _cut(self, table: Parameters, reached: set[str]) -> list[str]:
        """The trained weights without a gradient, if they are the first ones of the model."""
        expected = ~table.is_frozen & table.present & (table.owners >= 0)
        places = where(expected & table.is_weight)
        first = next((at for at, place in enumerate(places) if table.names[place] in reached), None)
        return [table.names[place] for place in places[:first]] if first else []

    def _is_early(self, seen: ObservedStep) -> bool:
        """Whether what is not used yet may be used later."""
        return self.steps < HEAD_STEPS or seen.step - (self.first or 0) < HEAD_FAR

    def _heads(self, seen: ObservedStep, table: Parameters, reached: set[str]) -> list[tuple[str, str]]:
        """The trained weights without a gradient that give one of several results, each with its name."""
        if self._is_early(seen):
            return []
        outputs, modules = seen.statistics("outputs"), Modules.of(seen)
        start = modules.output.removesuffix("0")
        results = [] if outputs is None else [name for name in outputs.names if name.startswith(start)]
        if outputs is None or len(results) < 2 or not reached:
            return []
        found = []
        for place in where(~table.is_frozen & table.present & (table.owners >= 0) & table.is_weight):
            given = f"{table.layers[place]}_output_0"
            if table.names[place] in reached or given not in outputs or given in results:
                continue
            row = outputs.row(given)
            same = [name for name in results if outputs.row(name) == row and row["std"] > 0]
            found += [(table.names[place], name) for name in same[:1]]
        return found

    def _unowned(self, seen: ObservedStep, table: Parameters) -> list[str]:
        """The weights with a gradient and without an optimizer, if most others have one.

        One for one is enough if the optimizer owns parameters in their place that no model has.
        """
        learns = ~table.is_frozen & table.has_gradient & table.is_weight
        has_owner = table.owners >= 0
        waiting = idle_optimizers.names_of(seen)
        unowned = [place for place in where(learns & ~has_owner) if table.names[place] not in waiting]
        owned = np.count_nonzero(learns & has_owner)
        groups = [
            group
            for optimizer in seen.facts.get("optimizers") or ()
            for group in optimizer.get("groups") or ()
        ]
        most = owned if any(group.get("others") for group in groups) else owned - 1
        if not unowned or len(unowned) > most:
            return []
        return [table.names[place] for place in unowned]


def _counted(count: int) -> str:
    return "1 parameter" if count == 1 else f"{count} parameters"


def _cut_off(name: str, layer: str, steps: int, count: int, weights: int) -> tuple[Any, ...]:
    """What to say of a layer that the loss does not reach."""
    return (
        name,
        f"{name} had no gradient at any of {steps} saved steps, as nothing before it in the model, while "
        f"later layers learn: {layer} is cut off from the loss",
        steps,
        "The first layers are cut off from the loss",
        f"{count} of {weights} weights had no gradient at {steps} saved steps",
        _DETACHED,
    )


def _without_loss(
    name: str, layer: str, output: str, steps: int, count: int, weights: int
) -> tuple[Any, ...]:
    """What to say of a layer whose result no loss is computed from."""
    return (
        name,
        f"{name} had no gradient at any of {steps} saved steps, although the model returns what {layer} "
        f"gives, {output}: no loss is computed from it",
        steps,
        "An output of the model has no loss",
        f"{count} of {weights} weights had no gradient at {steps} saved steps, and give an output of the "
        "model",
        _NO_LOSS,
    )


def _without_optimizer(name: str, layer: str, steps: int, count: int, weights: int) -> tuple[Any, ...]:
    """What to say of a layer that no optimizer has."""
    return (
        name,
        f"{name} has a gradient and belongs to no optimizer: {layer} never changes",
        steps,
        "A layer belongs to no optimizer",
        f"{count} of {weights} weights belong to no optimizer and have gradients",
        _OWN,
    )
