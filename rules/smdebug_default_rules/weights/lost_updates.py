"""Parameters that have a gradient and do not change, or that an optimizer no longer changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.rates import newest_rates
from smdebug_default_rules.tensors import Modules, Parameters
from smdebug_default_rules.weights import rounded_away
from smdebug_default_rules.weights.rounded_away import COARSE, USUAL_EPSILON
from smdebug_default_rules.weights.set_back import LEAST_STEPS, followed, set_back

REGULAR_STEPS = 5
"""A parameter that had a gradient at all of this many saved steps is expected to have one at the next."""
LEAST_RATIO = 1e-5
"""An expected update below this share of the values may be rounded away in float32."""
LEAST_SPACINGS = 8
"""An expected update of fewer spacings of the parameter's type at its largest value may be rounded away."""
STILL_STEPS = 3
"""After this many saved optimizer steps in a row without a change, one is reported."""


_LAST_NUMBER = re.compile(r"_?(\d{1,9})(?=\D*$)")


_OWNERS = (
    "Check that the optimizer was given the parameters of the model that is trained: make it after the model "
    "was moved, wrapped or copied."
)
_ORDER = "Call zero_grad() before backward(), never between backward() and step()."
_RESTORED = (
    "Look for code that sets .grad to None, restores the values after the step, or replaces the parameter."
)
_COPIED = (
    "Look for code in the loop that writes the old values: load_state_dict(), copy_(), .data = or a "
    "checkpoint that is loaded again at each step."
)
_ROUNDED = (
    "Keep the weights in float32 and compute in 16 bits (autocast), or use an optimizer with float32 copies: "
    "updates below half of the last digit are lost."
)


class LostUpdates(DefaultRule):
    """Fires when a step of the optimizer leaves a parameter bit-equal although it has a gradient.

    Also when the optimizer owns none of the model's parameters, when a layer that is still used stops
    receiving gradients, when parameters have their old values again at the step after, and when weights of
    16 bits keep most of their values because each update is rounded away.
    """

    cause = "lost update"
    needs = "no optimizer step with statistics of its parameters was saved"
    advice: ClassVar[Advice] = {
        "lost update": (
            _OWNERS,
            _ORDER,
            _RESTORED,
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.regular: dict[str, Any] = {}
        self.since: dict[str, int] = {}
        self.still: list[int] = []
        """The last saved steps of the optimizer, as long as none of them moved any parameter."""
        self.has_moved = False
        """Whether any step has moved a parameter."""
        self.beginnings: dict[str, list[int]] = {}
        """What each parameter began the last saved step with, and since when."""
        self.rounded = rounded_away.empty()
        """What weights of 16 bits were at first, and how far their updates should have moved them since."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        table = Parameters.of(seen)
        if not seen.facts.get("optimizer_steps") or table is None:
            self.looked = False
            return
        modules = Modules.of(seen)
        trained = ~table.is_frozen & table.present
        has_gradient = table.has_gradient & np.isfinite(table.gradient("rms"))
        rates = newest_rates(seen)
        owned = (table.owners >= 0) & trained
        # The first step of a training that follows another may be one of the model before.
        is_another = self.is_another_training(seen)
        if is_another:
            self.rounded = rounded_away.empty()
        if not owned.any():
            # One whose own parameters have gradients trains them, such as what this model is a copy of.
            is_idle = seen.facts.get("optimizers") and not seen.facts.get("other_gradients")
            if not is_another and (trained & has_gradient).any() and is_idle:
                yield self._not_owned(seen, table, trained & has_gradient)
            return
        if self._nothing_moves(seen, table, owned, owned & has_gradient, rates):
            yield self._all_still(table, owned, owned & has_gradient)
            return
        yield from self._rounded(seen, table, owned)
        self.beginnings = followed(self.beginnings, table, owned, seen.step)
        yield from self._set_back(seen, table, owned)
        still = {}
        lost = self._lost(table, owned & has_gradient, rates)
        if seen.facts.get("updates_are_differences"):
            # What is frozen is unknown: fine-tuning freezes most of a model on purpose, or its first layers.
            lost &= 2 * table.sizes[lost].sum() < table.sizes[owned].sum()
            lost &= _between_moving(table, lost, owned & ~lost & (table.update("rms") > 0))
        for place in where(lost):
            name = table.names[place]
            still[name] = self.since.get(name, seen.step)
            yield self.finding(
                f"{name} is bit-equal before and after the optimizer's step, "
                f"with a gradient of rms {table.gradient('rms')[place]:.3g} "
                f"in {modules.described(table.layers[place])}",
                since=still[name],
                tensor=name,
                statistic="rms of the update",
                value=0.0,
                limit="> 0",
                title=_of_how_many(lost, owned),
                why=_moved(table, place, owned & ~lost),
                advice=(_RESTORED, _OWNERS),
            )
        counts = _aligned(self.regular, table.names)
        for place in self._stopped(seen, table, owned, has_gradient):
            name = table.names[place]
            still[name] = self.since.get(name, seen.step)
            yield self.finding(
                f"{name} no longer has a gradient, and does not change, although "
                f"{modules.described(table.layers[place])} is still used: it had one at the "
                f"{counts[place]} saved steps before",
                since=still[name],
                tensor=name,
                statistic="saved steps with a gradient before",
                value=int(counts[place]),
                limit=REGULAR_STEPS,
                title="A layer has stopped learning",
                why=(
                    f"A gradient at {counts[place]} saved steps in a row, and none at step "
                    f"{seen.step}, where "
                    f"{int((owned & has_gradient).sum())} other parameters have one",
                ),
                advice=(
                    f"Look for .detach(), torch.no_grad() or .grad = None that begins to act on "
                    f"{modules.described(table.layers[place])} at about step {seen.step}.",
                ),
            )
        self._remember(table, owned, has_gradient, still)

    def _set_back(self, seen: ObservedStep, table: Parameters, owned: Any) -> Iterator[Finding]:
        found = set_back(self.beginnings, seen.step)
        for name, (since, count) in found.items():
            update = table.update("rms")[table.names.index(name)]
            yield self.finding(
                f"{name} is changed by the optimizer and has its old values again at the next step: it began "
                f"{count} saved steps in a row, from step {since} to {seen.step}, bit-equal",
                since=since,
                tensor=name,
                statistic="saved steps in a row that began with the same values",
                value=count,
                limit=LEAST_STEPS,
                title=_set_back_title(len(found), int((owned & table.is_weight).sum())),
                why=(f"{name}: update {update:.3g} at step {seen.step}, and no difference to step {since}",),
                advice=(_COPIED,),
            )

    def _rounded(self, seen: ObservedStep, table: Parameters, owned: Any) -> Iterator[Finding]:
        rounded_away.extend(self.rounded, seen, table, owned)
        if lost := rounded_away.found(self.rounded, seen, table):
            yield self.finding(
                lost.message,
                since=lost.since,
                tensor=lost.name,
                statistic="share of sampled values that have not changed",
                value=lost.kept,
                limit=rounded_away.LEAST_KEPT,
                title=rounded_away.TITLE,
                why=lost.why,
                advice=rounded_away.ADVICE,
            )

    def _not_owned(self, seen: ObservedStep, table: Parameters, which: Any) -> Finding:
        name = table.names[int(where(which)[0])]
        self.since.setdefault("", seen.step)
        return self.finding(
            f"The optimizer owns none of the model's {len(table.names)} "
            f"parameters: {name} and the others have gradients and never change",
            since=self.since[""],
            tensor=name,
            statistic="parameters of the model that an optimizer owns",
            value=0,
            limit="> 0",
            title="The optimizer has none of the model's parameters",
            why=(
                f"The optimizer has 0 of the {len(table.names)} parameters, and "
                f"{int(which.sum())} have gradients",
            ),
            advice=(_OWNERS,),
        )

    def _nothing_moves(
        self,
        seen: ObservedStep,
        table: Parameters,
        owned: Any,
        with_gradient: Any,
        rates: dict[int, float],
    ) -> bool:
        """Whether no parameter has moved at the last saved steps, although no rate is 0."""
        facts = seen.facts
        which = with_gradient
        if not which.any() and facts.get("backward_passes"):  # whose gradients were cleared
            count = table.gradient("count")
            which = owned if not np.nan_to_num(count[owned]).any() else which
        update = table.update("rms")[which]
        is_known = len(update) and np.isfinite(update).all() and not facts.get("updates_are_sampled")
        if not is_known or not _rates_are_known(rates) or _is_rounded(seen, table, which, rates):
            return False
        self.still = [] if update.any() else [*self.still, seen.step][:STILL_STEPS]
        self.has_moved = self.has_moved or bool(update.any())
        classes = [optimizer.get("class") for optimizer in facts.get("optimizers") or ()]
        has_arrived = self.has_moved and "LBFGS" in classes  # it stops at a solution by itself
        return len(self.still) >= STILL_STEPS and not has_arrived

    def _all_still(self, table: Parameters, owned: Any, with_gradient: Any) -> Finding:
        which = with_gradient if with_gradient.any() else owned
        name, others = table.names[int(where(which)[0])], int(which.sum()) - 1
        advice = (_RESTORED, _OWNERS)
        if not with_gradient.any():
            advice = (_ORDER, _RESTORED)
            why = (
                f"{name} and {others} others have no gradient when the optimizer steps, although a backward "
                "pass came before: they were cleared between the two"
            )
        else:
            why = f"{name} and {others} others have gradients and are bit-equal before and after each step"
            if (table.resolutions[which] > COARSE).any():  # neither float32 nor float64
                why += ": updates this small are rounded away in 16 bits"
                advice = (_ROUNDED, "Or raise the learning rate.")
        return self.finding(
            f"No step of the optimizer changes a parameter: {why}",
            since=self.still[0],
            tensor=name,
            statistic="parameters that a step changes",
            value=0,
            limit="> 0",
            title="No step changes a parameter",
            why=(f"0 of {others + 1} parameters changed at {len(self.still)} saved steps in a row",),
            advice=advice,
        )

    def _lost(self, table: Parameters, candidates: Any, rates: dict[int, float]) -> Any:
        update = table.update("rms")
        lost = candidates & (update == 0)
        if not lost.any():
            return lost
        moved = candidates & (update > 0)
        # How far others move, relative to their gradient, says how far this one should have moved.
        ratio = update[moved] / table.gradient("rms")[moved]
        step = float(np.median(ratio)) if moved.any() else 0.0
        expected = step * table.gradient("abs_mean")
        is_large = expected > np.maximum(LEAST_RATIO * table.column("rms"), _least_change(table))
        starts_at_zero = table.column("rms") == 0
        return lost & (is_large | starts_at_zero & (expected > 0)) & ~(_rate_of_each(table, rates) == 0)

    def _stopped(self, seen: ObservedStep, table: Parameters, owned: Any, has_gradient: Any) -> Iterator[int]:
        candidates = where(owned & ~has_gradient)
        if not candidates or not (owned & has_gradient).any():
            return
        outputs = seen.statistics("outputs")
        used: set[str] = set()
        if outputs is not None:
            used.update(outputs.names[place] for place in where(outputs.values[:, 0] > 0))
        counts = _aligned(self.regular, table.names)
        for place in candidates:
            name = table.names[place]
            regular = counts[place] >= REGULAR_STEPS or name in self.since
            is_used = f"{table.layers[place]}_output_0" in used
            if (
                regular
                and is_used
                and np.isnan(table.gradient("count")[place]) | (table.gradient("count")[place] == 0)
            ):
                yield int(place)

    def _remember(self, table: Parameters, owned: Any, has_gradient: Any, still: dict[str, int]) -> None:
        self.since = still
        counts = _aligned(self.regular, table.names)
        kept = np.array([name in still for name in table.names], bool) if still else False
        counts = np.where(has_gradient, np.minimum(counts + 1, 1000), np.where(kept, counts, 0))
        self.regular = {"names": list(table.names), "counts": np.where(owned, counts, 0).tolist()}


def _rate_of_each(table: Parameters, rates: dict[int, float]) -> Any:
    """The rate of each parameter's optimizer; NaN where it is not known."""
    return np.array([rates.get(owner, np.nan) for owner in table.owners])


def _least_change(table: Parameters) -> Any:
    """What an update has to be, at least, not to be rounded away."""
    return LEAST_SPACINGS * table.resolutions * table.largest


def _is_rounded(seen: ObservedStep, table: Parameters, which: Any, rates: dict[int, float]) -> bool:
    """Whether all gradients are so small that no step could change anything, as those of a loss of 0 are.

    That is expected in 32 bits or more; in 16 bits it happens while there is much to learn.
    """
    classes = {number: each.get("class") for number, each in enumerate(seen.facts.get("optimizers") or ())}
    is_plain = np.array([classes.get(owner) == "SGD" for owner in table.owners])
    gradient = table.largest_gradient
    size = np.where(is_plain, gradient, np.minimum(gradient / USUAL_EPSILON, 1))
    expected = _rate_of_each(table, rates) * size
    is_small = (expected < _least_change(table)) & (table.resolutions < COARSE)
    return bool(which.any() and is_small[which].all())


def _of_how_many(lost: Any, owned: Any) -> str:
    """The headline, which says how much of the model does not change."""
    still = int(lost.sum())
    return f"{still} of {int(owned.sum())} parameters {'does' if still == 1 else 'do'} not change"


def _set_back_title(count: int, weights: int) -> str:
    return f"{count} of {weights} weights {'is' if count == 1 else 'are'} set back after each step"


def _moved(table: Parameters, place: int, others: Any) -> tuple[str, ...]:
    """The gradient that changes nothing, and how far the others move."""
    ratio = table.update("rms")[others] / table.column("rms")[others]
    ratio = ratio[np.isfinite(ratio) & (ratio > 0)]
    gradient = f"{table.names[place]}: gradient {table.gradient('rms')[place]:.3g}, update 0"
    if not len(ratio):
        return (gradient,)
    return (f"{gradient}; the {len(ratio)} other parameters change by {float(np.median(ratio)):.2%} a step",)


def _between_moving(table: Parameters, lost: Any, moving: Any) -> Any:
    """Which of the lost ones belong to a layer `block_1` of which both `block_0` and `block_2` move."""
    numbers: dict[str, list[int]] = {}
    for place in where(moving):
        stem, number = _numbered(table.layers[place])
        numbers.setdefault(stem, []).append(number)
    found = np.zeros(len(table.names), bool)
    for place in where(lost):
        stem, number = _numbered(table.layers[place])
        others = numbers.get(stem, [number])
        found[place] = min(others) < number < max(others)
    return found


def _numbered(layer: str) -> tuple[str, int]:
    """The name of a layer without its last number, and that number: 0 where there is none."""
    found = _LAST_NUMBER.search(layer)
    if found is None:
        return layer, 0
    return layer[: found.start()] + layer[found.end() :], int(found[1])


def _rates_are_known(rates: dict[int, float]) -> bool:
    """Whether the learning rates are known, and none is 0, with which nothing should move."""
    return bool(rates) and all(rate > 0 for rate in rates.values())


def _aligned(regular: dict[str, Any], names: Sequence[str]) -> Any:
    """At how many saved steps in a row each parameter had a gradient."""
    if regular and regular["names"] == names:
        return np.array(regular["counts"], np.int64)
    known = dict(zip(regular["names"], regular["counts"], strict=True)) if regular else {}
    return np.array([known.get(name, 0) for name in names], np.int64)
