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
LONG, TOUCHES = 40, 4
"""Of this many saved steps, one that is left out has a gradient at so many at most: noise sends it tokens."""
LEAST_CHOICES = 3
"""So many rows for each expert come by while it is left out: few rows cannot reach many experts."""
REGULAR = 8
"""Experts in use had one more within so many saved steps: otherwise there are few tokens for all."""
HARDLY = 1e-5
"""An expert with less than this share of the largest gradient of the others learns nothing."""

_ROUTER = re.compile(r"(^|[._])(router|gate|gating|gates|routing)\d*($|[._])", re.IGNORECASE)
_NUMBER = re.compile(r"(?<=[._/])(\d{1,4})(?=[._/])")


_BALANCES = {
    "no gradient": (
        "a part of the loss has no gradient",
        "Look at the balancing loss: compute it from the router's probabilities, outside of no_grad and "
        "without detach(). Counts of tokens have no gradient.",
    ),
    "weight 0": (
        "a part of the loss has a weight of 0",
        "Give the balancing loss a weight above 0, such as 0.01: it is multiplied with 0.",
    ),
}
"""What is said where a part of the loss teaches nothing, and what to try first."""


class UnusedExperts(DefaultRule):
    """Fires when most of several like layers get no gradient, the same ones at nearly every saved step.

    They are called experts, or the model has a router or gate and has used more of them in one step before:
    tasks that take turns, and layers that are trained in phases, are not experts that a router leaves out.
    A router of another name is known by its shape: a trained layer beside them, with their inputs and a unit
    for each, that gives none of the model's outputs.
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
        self.idle = ""
        """Why a part of the loss, such as that of the balance, teaches nothing; "" if each part does."""

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
            groups = experts_of(table)
            choosers = {
                name: chooser_of(table, name, places)
                for name, places in groups.items()
                if not is_mixture and not _is_expert(name)
            }
            groups = {name: places for name, places in groups.items() if choosers.get(name, name)}
            seen.shared_by_layout["choosers"] = choosers
            seen.shared_by_layout["experts"] = groups
        self.idle = str((seen.facts.get("loss") or {}).get("idle") or "")
        found = {name: used for name, places in groups.items() if (used := _used(table, places)) is not None}
        if not found:
            self.looked = False
        for name, used in found.items():
            self.groups[name] = followed(self.groups.get(name), used, seen.step)
            chooser = seen.shared_by_layout["choosers"].get(name, "")
            if chooser and not self._chooses(chooser, seen, table):
                continue
            unused = left_out(
                self.groups[name],
                f"{name} expert" if chooser else name,
                groups[name],
                seen.step,
                has_router=is_mixture,
                rows=_rows(seen),
            )
            if unused is not None:
                yield self._finding(groups[name], unused, table)

    def _chooses(self, chooser: str, seen: ObservedStep, table: Parameters) -> bool:
        """Whether a layer without the name of a router may be one: it is trained, and gives no output."""
        place = list(table.names).index(chooser)
        outputs, output = seen.statistics("outputs"), Modules.of(seen).output
        given = f"{table.layers[place]}_output_0"
        if not table.has_gradient[place] or outputs is None or given not in outputs or output not in outputs:
            return False
        results = [name for name in outputs.names if name.startswith(output.removesuffix("0"))]
        if outputs.row(output)["count"] == 1:  # a loss, of results that are not known
            return False
        return all(outputs.row(given) != outputs.row(name) for name in results)

    def _finding(self, places: Mapping[int, list[int]], unused: LeftOut, table: Parameters) -> Finding:
        count, without = len(places), len(unused.numbers)
        first = table.names[places[unused.numbers[0]][0]]
        layer = first.rpartition(".")[0] or first
        others = "" if without == 1 else " and 1 other" if without == 2 else f" and {without - 1} others"
        little = (
            "no gradient" if not unused.touches else f"a gradient at {unused.touches} saved steps at most"
        )
        balance = _BALANCES.get(self.idle)
        return self.finding(
            f"{layer}{others} {'has' if without == 1 else 'have'} had {little} since step {unused.since}: "
            f"the router sends the inputs to {count - without} of {count} experts"
            + (f", and {balance[0]}" if balance else ""),
            since=unused.since,
            tensor=first,
            statistic="experts without a gradient",
            value=without,
            limit=count,
            title=f"The router uses {count - without} of {count} experts",
            why=(
                f"{without} of {count} experts had no gradient at any of the last {unused.steps} saved steps"
                if not unused.touches
                else f"{without} of {count} experts had a gradient at {unused.touches} of the last "
                f"{unused.steps} saved steps at most",
                *((f"{balance[0][:1].upper()}{balance[0][1:]}",) if balance else ()),
            ),
            advice=(balance[1], *self.advice["unused experts"][1:]) if balance else (),
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


def chooser_of(table: Parameters, name: str, places: Mapping[int, list[int]]) -> str:
    """A weight beside like layers that has a unit for each of them, and their inputs; "" if there is none.

    The last weight of the model is no router: it may have as many classes.
    """
    before = name.removesuffix("#")
    parent = before.rstrip("._/").rpartition(".")[0] or before.partition("_")[0]
    first = next(iter(places.values()))[0]
    inputs = table.sizes[first] // table.units[first]
    weights = [place for place, is_weight in enumerate(table.is_weight) if is_weight and table.present[place]]
    for place in weights[:-1]:
        own = table.names[place]
        is_beside = own.startswith(parent) and not own.startswith(before)
        if is_beside and table.units[place] == len(places) and table.sizes[place] == inputs * len(places):
            return own
    return ""


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
    """Return what to keep of a group: the last uses of each expert, and the most that one step has used."""
    if kept is None or "uses" not in kept:
        kept = {"first": step, "steps": 0, "most": 0, "uses": []}
    steps = kept["steps"] + 1
    uses = dict(kept["uses"])
    for number in used:
        uses[number] = [*uses.get(number, ()), [steps, step]][-TOUCHES - 1 :]
    return {
        "first": kept["first"],
        "steps": steps,
        "most": max(kept["most"], len(used)),
        "uses": [[number, own] for number, own in sorted(uses.items())],
    }


def _is_expert(name: str) -> bool:
    return "expert" in name.lower()


def _rows(seen: ObservedStep) -> int | None:
    """How many rows the batch has; None if that is not known."""
    shapes = seen.facts.get("shapes") or [[]]
    return int(shapes[0][0]) if shapes[0] else None


class LeftOut(NamedTuple):
    """Experts that have not been used for long."""

    numbers: list[int]
    since: int
    steps: int
    """How many saved steps have left them out."""
    touches: int = 0
    """At how many of these one of them was used at most."""


def has_router(modules: Iterable[str]) -> bool:
    """Whether a module of these is called a router or gate."""
    return any(_ROUTER.search(name) for name in modules)


def left_out(
    kept: Mapping[str, Any],
    name: str,
    numbers: Iterable[int],
    step: int,
    *,
    has_router: bool = False,
    rows: int | None = None,
) -> LeftOut | None:
    """The experts that have been left out for long, if they are most of all, and are experts.

    `rows` is how many rows a batch has, where that is known.
    """
    never = [0, kept["first"]]
    uses = dict(kept["uses"])
    own = {number: [never] * (TOUCHES + 1) + uses.get(number, []) for number in numbers}
    steps = kept["steps"]
    batches = LEAST_CHOICES * len(own) // (rows or len(own) * LEAST_CHOICES)
    without = {
        number: times[-1]
        for number, times in own.items()
        if _is_long(steps, step, times[-1], max(LEAST_STEPS, batches))
    }
    hardly = {number: times[-1 - TOUCHES] for number, times in own.items() if number not in without}
    hardly = {
        number: at for number, at in hardly.items() if _is_long(steps, step, at, max(LONG, TOUCHES * batches))
    }
    if hardly:
        # Experts that few tokens are spread over have gradients now and then, and none of them always.
        regular = [times[-1 - TOUCHES][0] > steps - REGULAR for times in own.values()]
        hardly = hardly if any(regular) else {}
    unused = sorted({**without, **hardly})
    used = len(own) - len(unused)
    were_used = has_router and kept["most"] > used and 2 * kept["most"] >= len(own)
    are_experts = _is_expert(name) or were_used
    if not 0 < used <= max(1, MOST_USED * len(own)) or not are_experts:
        return None
    since = {**without, **hardly}
    touches = max((sum(saved > since[number][0] for saved, _ in own[number]) for number in hardly), default=0)
    return LeftOut(
        unused, max(at for _, at in since.values()), steps - max(at for at, _ in since.values()), touches
    )


def _is_long(steps: int, step: int, since: list[int], least: int) -> bool:
    """Whether so many saved steps have passed, and so many others."""
    return steps - since[0] >= least and step - since[1] >= LEAST_APART
