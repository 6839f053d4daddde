"""Experts of a mixture that get no tokens, because the router sends nearly everything to the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules, Parameters

LEAST_STEPS = 12
"""The same experts are left out at this many saved steps in a row."""
LEAST_APART = 60
"""The first and the last of them are at least this many steps apart."""
LEAST_EXPERTS = 3
MOST_USED = 0.25
"""The router has collapsed if it uses this share of the experts at most, or a single one. Small healthy ones
often leave half of them out."""
HARDLY = 1e-5
"""An expert with less than this share of the largest gradient of the others learns nothing."""

_ROUTER = re.compile(r"(^|[._])(router|gate|gating|gates|routing)\d*($|[._])", re.IGNORECASE)
_NUMBER = re.compile(r"(?<=[._/])(\d{1,4})(?=[._/])")


class UnusedExperts(DefaultRule):
    """Fires when most of several like layers get no gradient, the same ones at every saved step.

    They are called experts, or the model has a router or gate and has used more of them in one step before:
    tasks that take turns, and layers that are trained in phases, are not experts that a router leaves out.
    """

    cause = "unused experts"
    needs = "the model has no experts: three like layers or more that are named so, or stand beside a router"
    advice: ClassVar[Advice] = {
        "unused experts": (
            "Add a balancing loss with a weight of about 0.01, such as the number of experts times the sum "
            "of share of tokens x mean probability. Its gradient comes through the probabilities: counts "
            "have none.",
            "Start the router small and without a bias, and add noise to its logits in training.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.groups: dict[str, dict[str, Any]] = {}
        """What is kept of each group of experts."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        table = Parameters.of(seen)
        if not seen.facts.get("optimizer_steps") or table is None:
            self.looked = False
            return
        if self.is_another_training(seen):
            self.groups = {}
        is_mixture = has_router(Modules.of(seen).classes)
        groups = seen.shared_by_layout.get("experts")
        if groups is None:
            groups = {
                name: places for name, places in experts_of(table).items() if is_mixture or _is_expert(name)
            }
            seen.shared_by_layout["experts"] = groups
        found = {name: used for name, places in groups.items() if (used := _used(table, places)) is not None}
        if not found:
            self.looked = False
        for name, used in found.items():
            self.groups[name] = followed(self.groups.get(name), used, seen.step)
            unused = left_out(self.groups[name], name, groups[name], seen.step, has_router=is_mixture)
            if unused is not None:
                yield self._finding(groups[name], unused, table)

    def _finding(self, places: Mapping[int, list[int]], unused: LeftOut, table: Parameters) -> Finding:
        count, without = len(places), len(unused.numbers)
        first = table.names[places[unused.numbers[0]][0]]
        layer = first.rpartition(".")[0] or first
        others = "" if without == 1 else " and 1 other" if without == 2 else f" and {without - 1} others"
        return self.finding(
            f"{layer}{others} {'has' if without == 1 else 'have'} had no gradient since step "
            f"{unused.since}: the router sends the inputs to {count - without} of {count} experts",
            since=unused.since,
            tensor=first,
            statistic="experts without a gradient",
            value=without,
            limit=count,
            title=f"The router uses {count - without} of {count} experts",
            why=(
                f"{without} of {count} experts had no gradient at any of the last {unused.steps} saved steps",
            ),
        )


def experts_of(table: Parameters) -> dict[str, dict[int, list[int]]]:
    """Groups of like layers: by a name with `#` for the number, the places of each one's parameters.

    `Net_experts.0.up.weight` to `Net_experts.7.up.weight` of one shape belong to `Net_experts.#`.
    """
    shapes: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    for place, name in enumerate(table.names):
        if not table.is_weight[place] or table.is_frozen[place] or table.owners[place] < 0:
            continue
        for number in _NUMBER.finditer(name):
            key = (name[: number.start()], name[number.end() :])
            shapes.setdefault(key, {})[int(number[1])] = (place, int(table.sizes[place]))
    groups: dict[str, dict[int, list[int]]] = {}
    for (before, _), found in shapes.items():
        if len(found) >= LEAST_EXPERTS and len({size for _, size in found.values()}) == 1:
            group = groups.setdefault(f"{before}#", {})
            for expert, (place, _) in found.items():
                group.setdefault(expert, []).append(place)
    return groups


def _used(table: Parameters, places: Mapping[int, list[int]]) -> list[int] | None:
    """The numbers of the experts that have a gradient; None if none has."""
    size = np.nan_to_num(table.gradient("rms"))
    largest = {number: float(max(size[place] for place in own)) for number, own in places.items()}
    most = max(largest.values())
    if not most > 0 or not np.isfinite(most):
        return None
    is_named = any("expert" in table.names[own[0]].lower() for own in places.values())
    least = HARDLY * most if is_named else 0.0
    return [number for number, value in largest.items() if value > least]


def followed(kept: Mapping[str, Any] | None, used: list[int], step: int) -> dict[str, Any]:
    """Return what to keep of a group: when each expert was used last, and the most that one step has used."""
    if kept is None:
        kept = {"first": step, "steps": 0, "most": 0, "last": []}
    steps = kept["steps"] + 1
    last = {number: at for number, *at in kept["last"]} | {number: [steps, step] for number in used}
    return {
        "first": kept["first"],
        "steps": steps,
        "most": max(kept["most"], len(used)),
        "last": [[number, *at] for number, at in sorted(last.items())],
    }


def _is_expert(name: str) -> bool:
    return "expert" in name.lower()


class LeftOut(NamedTuple):
    """Experts that have not been used for long."""

    numbers: list[int]
    since: int
    steps: int
    """How many saved steps have left them out."""


def has_router(modules: Iterable[str]) -> bool:
    """Whether a module of these is called a router or gate."""
    return any(_ROUTER.search(name) for name in modules)


def left_out(
    kept: Mapping[str, Any], name: str, numbers: Iterable[int], step: int, *, has_router: bool = False
) -> LeftOut | None:
    """The experts that have been left out for long, if they are most of all, and are experts."""
    last = {number: at for number, *at in kept["last"]}
    times = {number: last.get(number, [0, kept["first"]]) for number in numbers}
    unused = [
        number
        for number, (saved, at) in times.items()
        if kept["steps"] - saved >= LEAST_STEPS and step - at >= LEAST_APART
    ]
    used = len(times) - len(unused)
    were_used = has_router and kept["most"] > used and 2 * kept["most"] >= len(times)
    are_experts = _is_expert(name) or were_used
    if not 0 < used <= max(1, MOST_USED * len(times)) or not are_experts:
        return None
    since = max(at for number, (_, at) in times.items() if number in unused)
    return LeftOut(unused, since, min(kept["steps"] - times[number][0] for number in unused))
