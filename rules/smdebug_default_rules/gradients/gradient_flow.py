"""Gradients that shrink from layer to layer, until the first layers learn nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.scales import mask
from smdebug_default_rules.tensors import Modules, Parameters, usual_sizes

LIMIT = 1e-5
"""Gradient over weights of a layer, as a share of that of the last layers."""
LEAST_STEPS = 3
LEAST_LAYERS = 3
YOUNG = 0.1
"""Weights of at most this share of usual ones began at zero, and have not grown yet."""
GROWN = 10.0
"""Weights that were zero are as large as those that begin at random from this share of usual ones on."""

_DEEP = "Add residual connections or normalisations between the layers, so that the gradient has a short way."
_FORMS = ("{}", "{}_proj", "{}_lin", "to_{}", "w{}", "w_{}", "W_{}")
_SCORED = frozenset(form.format(name) for form in _FORMS for name in ("q", "k", "query", "key"))
"""How layers of queries and keys are called."""
_BOUNDED = frozenset(("Sigmoid", "Tanh", "sigmoid", "tanh"))


class GradientFlow(DefaultRule):
    """Fires when the first weights get 1e-5 of the gradient of the last ones, three saved steps in a row.

    Weights that began at zero are compared once they are as large as others begin: until then their gradient
    is large beside them, and layers before them get little, such as those of an adapter or of a denoiser.
    """

    cause = "vanishing gradient"
    needs = "no statistics of parameters with their gradients were saved"
    advice: ClassVar[Advice] = {
        "vanishing gradient": (
            "Replace sigmoid and tanh by ReLU or GELU, and add normalisations or residual connections.",
            "Initialise the weights for the activation (Xavier for tanh, Kaiming for ReLU).",
            _DEEP,
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: dict[str, int] = {}
        self.steps: dict[str, int] = {}
        self.grow: set[str] = set()
        """The weights that were zero, and are not as large yet as others begin."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        table = Parameters.of(seen)
        if table is None or seen.statistics("gradients") is None:
            self.looked = False
            return
        weights = table.column("rms")
        judged = _is_judged(seen, table) & ~self._grows(table, weights)
        if np.count_nonzero(judged) < LEAST_LAYERS:
            self.lacks(
                f"fewer than {LEAST_LAYERS} layers have weights that are trained, and did not begin at zero"
            )
            return
        flow = table.gradient("rms") / weights
        places = where(judged & np.isfinite(flow))
        shrunk = self._shrunk(flow, places)
        modules = Modules.of(seen)
        if shrunk and _reaches_embeddings(modules, table, flow, shrunk, last=places[-1]):
            shrunk = []  # small for another reason, such as queries whose scores are nearly equal
        self.steps = {table.names[p]: self.steps.get(table.names[p], 0) + 1 for p in shrunk}
        self.since = {name: self.since.get(name, seen.step) for name in self.steps}
        last = float(flow[places[-1]]) if len(places) else 0.0
        for place in shrunk:
            name = table.names[place]
            if self.steps[name] >= LEAST_STEPS:
                yield self.finding(
                    "The gradient vanishes before it reaches "
                    f"{modules.described(table.layers[place])}: relative to its weights, "
                    f"that of {name} is {flow[place] / last:.2g} of the last layer's",
                    since=self.since[name],
                    tensor=name,
                    statistic="gradient over weights, as a share of the last layer's",
                    value=float(flow[place] / last),
                    limit=LIMIT,
                    why=(
                        f"Gradient over weights: {flow[place]:.2g} in {name}, {last:.2g} in the last layer",
                        *((hidden.why,) if (hidden := mask(seen)) else ()),
                    ),
                    advice=self._what_to_try(seen, modules),
                )

    def _grows(self, table: Parameters, weights: Any) -> Any:
        """Which weights began at zero and have not grown yet."""
        usual = usual_sizes(table)
        young = weights <= YOUNG * usual
        self.grow |= {table.names[place] for place in where(weights == 0)}
        if self.grow:
            is_small = weights < GROWN * usual
            self.grow &= {table.names[place] for place in where(is_small)}
            young |= is_small & np.array([name in self.grow for name in table.names], bool)
        return young

    def _what_to_try(self, seen: ObservedStep, modules: Modules) -> tuple[str, ...]:
        """The mask first if there is one, then what the activations of the model call for."""
        bounded, initial, deep = self.advice["vanishing gradient"]
        hidden = mask(seen)
        has_bounded = not _BOUNDED.isdisjoint((*modules.classes.values(), *modules.activations.values()))
        first = (hidden.advice,) if hidden else ()
        return (*first, bounded, initial) if has_bounded else (*first, deep, initial)

    def _shrunk(self, flow: Any, places: Any) -> list[int]:
        """The first weights, as far as their gradients are tiny and grow towards the last ones."""
        if len(places) < LEAST_LAYERS:
            return []
        values = flow[places]
        if not values[0] < LIMIT * values[-1]:
            return []  # the usual case, short
        reference = float(np.max(values[len(values) // 2 :]))
        if not reference > 0 or not values[-1] > 0:
            return []
        tiny = (values < LIMIT * values[-1]) & (values < LIMIT * reference) & (values > 0)
        prefix = int(np.argmin(tiny)) if not tiny.all() else len(tiny)
        # It shrinks on its way: the middle has less than the end and more than the beginning.
        if not prefix or not np.median(values[: prefix + 1]) >= values[:prefix].min():
            return []
        return [int(place) for place in places[:prefix]]


def _reaches_embeddings(modules: Modules, table: Parameters, flow: Any, shrunk: list[int], last: int) -> bool:
    """Whether embeddings before these weights get a gradient, which has passed them on its way."""
    before = [
        place
        for place in range(shrunk[0])
        if table.classes[place].startswith("Embedding") and not table.is_frozen[place]
    ]
    linear = {name for name, kind in modules.classes.items() if kind == "Linear"}
    if before and not linear <= set(
        table.layers
    ):  # a last layer shares the tokens', and reaches them directly
        before.remove(max(before, key=lambda place: table.sizes[place]))
    return any(flow[place] >= LIMIT * flow[last] for place in before)


def _is_judged(seen: ObservedStep, table: Parameters) -> Any:
    """Which are trained weights, and no embeddings, whose gradient has the few rows of the batch.

    Queries and keys have little for another reason: the scores of young attention are nearly equal.
    """
    known = seen.shared_by_layout.get("judged by their flow")
    if known is None:
        known = np.array([not kind.startswith("Embedding") for kind in table.classes], bool)
        known &= table.is_weight & ~table.is_frozen
        known &= np.array([_SCORED.isdisjoint(layer.split(".")) for layer in table.layers], bool)
        seen.shared_by_layout["judged by their flow"] = known
    return known
