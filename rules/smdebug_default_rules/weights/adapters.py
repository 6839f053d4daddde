"""Low-rank adapters that cannot learn, or whose layers learn in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded, where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.rates import newest_rates
from smdebug_default_rules.tensors import Modules, Parameters
from smdebug_default_rules.weights import new_heads

LEAST_STEPS = 3
"""What has to hold of an adapter at this many saved optimizer steps in a row before it is reported."""
_MATRIX = re.compile(
    r"^(?:(?P<layer>.*?)[._])?lora_?(?P<matrix>a|b|down|up)(?P<rest>[._].*)?$", re.IGNORECASE
)
_FIRST = ("a", "down")
MOST_COMPARED = 32
CHANGED, KEPT = 5e-3, 0.5
"""A value that changes by more than this share of a weight's size is no rounding; and an adapter whose second
matrix keeps half of its size did not begin anew, as one does that is merged on purpose now and then."""


@dataclass(frozen=True)
class Adapter:
    """Two narrow matrices beside a layer, as rows of the parameters."""

    layer: str
    first: int
    second: int
    base: int | None
    """The weight that their product is added to, if it is found."""

    @property
    def places(self) -> tuple[int, int]:
        """The rows of both matrices."""
        return self.first, self.second


_ATTACH = (
    "Attach the adapters before the optimizer is made, and give it every parameter with requires_grad: "
    "[p for p in model.parameters() if p.requires_grad]."
)
_MERGED = (
    "Merge adapters once, after the training (merge_and_unload()). To merge during the training, take them "
    "out again with unmerge_adapter(), or start lora_B at zero again."
)
_CALLED = (
    "Compare target_modules with the names in model.named_modules(), and check that the forward calls the "
    "adapted layer."
)


class Adapters(DefaultRule):
    """Fires when adapters have no optimizer, get no gradient or stay zero, or their layers change, too.

    Adapters are pairs of parameters named lora_A and lora_B, or lora_down and lora_up. Each has to be found
    at three saved optimizer steps in a row. A frozen layer that changes while its adapter is kept is reported
    at once: the adapter was merged into it, and is added once more. And it fires when the last layer is new
    and frozen, as where a head is not named in `modules_to_save`.
    """

    cause = "adapter"
    needs = "no optimizer step with adapters (parameters named lora_A and lora_B) was saved"
    advice: ClassVar[Advice] = {
        "adapter": (
            _ATTACH,
            "Start lora_A at random and only lora_B at zero, and freeze the weights of the model first: "
            "model.requires_grad_(False).",
            _CALLED,
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps: dict[str, int] = {}
        self.since: dict[str, int] = {}
        self.waiting: list[str] | None = None
        """The layers of which no adapter has had a gradient; None before the first step."""
        self.bases: dict[str, list[float]] = {}
        """Some values of the frozen weight of each adapted layer."""
        self.sizes: dict[str, float] = {}
        """The size of each adapter's second matrix."""
        self.merged: dict[str, int] = {}
        """The layers that their adapter was merged into, and since when."""
        self.head = new_heads.empty()
        """What is known of a last layer that is frozen as it was drawn."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        table = Parameters.of(seen)
        adapters = None if table is None else _adapters(seen, table)
        if table is None or not adapters or not seen.facts.get("optimizer_steps"):
            self.looked = False
            return
        rates = newest_rates(seen)
        if seen.facts.get("update_skipped") or (rates and not all(rates.values())):
            return  # a step that changes nothing says nothing
        trained = ~table.is_frozen & table.present
        learns = [adapter for adapter in adapters if trained[[*adapter.places]].any()]
        reached = {each.layer for each in learns if table.has_gradient[[*each.places]].any()}
        waiting = {adapter.layer for adapter in learns} if self.waiting is None else {*self.waiting}
        self.waiting = sorted(waiting - reached)
        found = [*_problems(seen, table, learns, frozenset(self.waiting))]
        named = {f"{problem} {adapter.layer}" for problem, adapter, _ in found}
        self.steps = {key: self.steps.get(key, 0) + 1 for key in named}
        self.since = {key: self.since.get(key, seen.step) for key in named}
        yield from self._reported(seen, table, found, len(adapters))
        self._compare_bases(seen, table, adapters)
        for layer, since in self.merged.items():
            yield self._merged_finding(seen, layer, since, len(adapters))
        if reached:
            yield from self._new_head(seen, table, adapters)

    def _new_head(self, seen: ObservedStep, table: Parameters, adapters: list[Adapter]) -> Iterator[Finding]:
        places = {place for adapter in adapters for place in adapter.places}
        if head := new_heads.found(self.head, seen, table, places):
            yield self.finding(
                head.message,
                since=head.since,
                tensor=head.name,
                statistic="saved steps",
                value=head.steps,
                title=new_heads.TITLE,
                why=head.why,
                advice=new_heads.ADVICE,
            )

    def _compare_bases(self, seen: ObservedStep, table: Parameters, adapters: list[Adapter]) -> None:
        """Note the frozen layers that have changed since the last step, unless their adapters began anew."""
        samples = seen.samples("parameters")
        for adapter in adapters:
            base, second = adapter.base, float(table.column("rms")[adapter.second])
            sample = None if base is None or not table.is_frozen[base] else samples.get(table.names[base])
            if sample is None or base is None or not np.isfinite(sample).all():
                self.bases.pop(adapter.layer, None)
                continue
            before, size = self.bases.get(adapter.layer), self.sizes.get(adapter.layer, 0.0)
            values = rounded(sample[:MOST_COMPARED].tolist())
            if before is not None and len(before) == len(values) and second > KEPT * size > 0:
                change = float(np.abs(np.subtract(values, before)).max())
                if change > CHANGED * float(table.column("rms")[base]):
                    self.merged.setdefault(adapter.layer, seen.step)
            self.bases[adapter.layer], self.sizes[adapter.layer] = values, rounded((second,))[0]

    def _merged_finding(self, seen: ObservedStep, layer: str, since: int, count: int) -> Finding:
        return self.finding(
            f"The frozen weight of {Modules.of(seen).described(layer)} changed by step {since}, and its "
            f"adapter was kept: it was merged into the layer, and is added to it once more. That is so of "
            f"{len(self.merged)} of {count} adapters",
            since=since,
            tensor=layer,
            statistic="merged adapters",
            value=len(self.merged),
            limit=0,
            title="Adapters are merged and still added",
            why=(f"{len(self.merged)} of {count} layers changed although they are frozen, by step {since}",),
            advice=(_MERGED,),
        )

    def _reported(
        self, seen: ObservedStep, table: Parameters, found: list[tuple[str, Adapter, int]], count: int
    ) -> Iterator[Finding]:
        modules = Modules.of(seen)
        lasting: dict[str, list[tuple[Adapter, int]]] = {}
        for problem, adapter, place in found:
            if self.steps[f"{problem} {adapter.layer}"] >= LEAST_STEPS:
                lasting.setdefault(problem, []).append((adapter, place))
        for problem, those in lasting.items():
            adapter, place = those[0]
            if problem == _TRAINED_BASE and 2 * len(those) < count:
                continue  # single layers may be trained whole on purpose
            since = max(self.since[f"{problem} {each.layer}"] for each, _ in those)
            yield self.finding(
                f"{len(those)} of {count} adapters {problem}: {table.names[place]} of "
                f"{modules.described(modules.layer_of(table.names[place]))} {_BECAUSE[problem]}",
                since=self.since[f"{problem} {adapter.layer}"],
                tensor=table.names[place],
                statistic="adapters",
                value=len(those),
                limit=0,
                title=_TITLES[problem],
                why=(f"{len(those)} of {count} adapters, at every saved step from step {since} on",),
                advice=(_ADVICE[problem],),
            )


_NO_OWNER = "belong to no optimizer"
_BOTH_ZERO = "cannot learn"
_STAYS_ZERO = "stay zero"
_NOT_CALLED = "get no gradient"
_TRAINED_BASE = "lie beside weights that are trained, too"
_BECAUSE = {
    _NO_OWNER: "has a gradient and never changes",
    _BOTH_ZERO: "is zero, as is the other matrix, so that neither gets a gradient",
    _STAYS_ZERO: "is all zero after several steps, so that the adapter adds nothing to its layer",
    _NOT_CALLED: "has none, while others learn: the forward does not use it",
    _TRAINED_BASE: "is not frozen, and the optimizer changes it",
}


_TITLES = {
    _NO_OWNER: "Adapters belong to no optimizer",
    _BOTH_ZERO: "Adapters start where they cannot learn",
    _STAYS_ZERO: "Adapters stay zero",
    _NOT_CALLED: "Adapters are not used",
    _TRAINED_BASE: "The model is trained beside its adapters",
}
_ADVICE = {
    _NO_OWNER: _ATTACH,
    _BOTH_ZERO: "Start lora_A at random and only lora_B at zero.",
    _STAYS_ZERO: "Look for what keeps lora_B at zero: requires_grad = False, a mask, a copy, or an optimizer "
    "without it. " + _ATTACH,
    _NOT_CALLED: _CALLED,
    _TRAINED_BASE: "Freeze the model before the adapters are attached: model.requires_grad_(False).",
}


def _problems(
    seen: ObservedStep, table: Parameters, adapters: list[Adapter], waiting: frozenset[str]
) -> Iterator[tuple[str, Adapter, int]]:
    """Yield what is wrong with each adapter at this step, and the row that shows it."""
    has_optimizers = bool(seen.facts.get("optimizers"))
    used = _used(seen)
    moves = table.update("abs_mean") > 0
    size, modules = table.column("rms"), Modules.of(seen)
    for adapter in adapters:
        first, second = adapter.places
        owned = [place for place in adapter.places if table.owners[place] >= 0]
        if has_optimizers and not owned and table.has_gradient[[first, second]].any():
            yield _NO_OWNER, adapter, first if table.has_gradient[first] else second
        elif size[first] == 0 and size[second] == 0:
            yield _BOTH_ZERO, adapter, first
        elif size[second] == 0 and table.is_frozen[second]:
            yield _STAYS_ZERO, adapter, second
        elif adapter.layer in waiting:
            is_used = f"{modules.layer_of(adapter.layer + '.weight')}_output_0" in used
            if adapter.base is not None and is_used and table.has_gradient.any():
                yield _NOT_CALLED, adapter, second
        elif (zero := _still_zero(table, adapter)) is not None:
            yield _STAYS_ZERO, adapter, zero
        elif (
            (base := adapter.base) is not None
            and not table.is_frozen[base]
            and table.owners[base] >= 0
            and moves[base]
        ):
            yield _TRAINED_BASE, adapter, base


def _still_zero(table: Parameters, adapter: Adapter) -> int | None:
    """The matrix that is zero and that this step does not change, unless its optimizer did not step."""
    for place in (adapter.second, adapter.first):
        if table.column("rms")[place] == 0 and (table.owners[place] < 0 or table.update("rms")[place] == 0):
            return place
    return None


def _used(seen: ObservedStep) -> set[str]:
    """The outputs that the step has."""
    outputs = seen.statistics("outputs")
    return set() if outputs is None else {outputs.names[place] for place in where(outputs.values[:, 0] > 0)}


def _adapters(seen: ObservedStep, table: Parameters) -> list[Adapter]:
    """The adapters of the model, worked out once for each layout."""
    known: list[Adapter] | None = seen.shared_by_layout.get("adapters")
    if known is None:
        known = seen.shared_by_layout["adapters"] = _paired(table)
    return known


def _paired(table: Parameters) -> list[Adapter]:
    halves: dict[tuple[str, str], dict[bool, int]] = {}
    for place, name in enumerate(table.names):
        match = _MATRIX.match(name) if "lora" in name.lower() and table.axes[place] == 2 else None
        if match is not None:
            is_first = match["matrix"].lower() in _FIRST
            halves.setdefault((match["layer"] or "", match["rest"] or ""), {})[is_first] = place
    return [
        Adapter(layer, pair[True], pair[False], _base(table, layer, pair[True], pair[False]))
        for (layer, _), pair in halves.items()
        if len(pair) == 2
    ]


def _base(table: Parameters, layer: str, first: int, second: int) -> int | None:
    """The weight of the layer, if one has the form of the product of both matrices."""
    ranks = {int(table.units[first]), int(table.sizes[first] // table.units[first])} & {
        int(table.units[second]),
        int(table.sizes[second] // table.units[second]),
    }
    sizes = {int(table.sizes[first] * table.sizes[second]) // rank**2 for rank in ranks}
    for place in where(table.is_weight):
        name = table.names[place]
        is_of_layer = name.startswith(f"{layer}.") and name.count(".") <= layer.count(".") + 2
        if is_of_layer and "lora" not in name[len(layer) :].lower() and int(table.sizes[place]) in sizes:
            return place
    return None
