"""Weights that choose, of which the loss does not learn the choice: routers, and tables of positions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from smdebug.numbers.rows import COLUMN
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.layers.unused_experts import experts_of
from smdebug_default_rules.tensors import Modules, Parameters

LEAST_POSITIONS, LEAST_TOKENS = 8, 4
_ROUTER = re.compile(r"(^|[._])(router|gate|gating|routing)(\.[._\w]*)?$", re.IGNORECASE)
_INSIDE = re.compile(r"expert\w*[._]\d+[._]", re.IGNORECASE)
"""A gate of an expert's own is no router; the class of the model may be called after its experts."""
_POSITIONS = re.compile(
    r"(^|[._])(wpe|pos|positions?|positional)(_?(embed|embeddings?|encoding))?s?\.weight$"
)
_TABLE = re.compile(
    r"(^|[._])(wpe|(pos|positions?|positional)(_?(emb|embed|embeddings?|encoding|table))?s?)(\.weight)?$"
)
_EMBEDDING = "Embedding"

ROUTED = (
    "Multiply what each expert returns by the probability that the router gave it, from a softmax over all "
    "experts: an index of argmax or topk has no gradient, and of a single chosen expert a softmax is 1."
)
PLACED = (
    "Give the positions torch.arange(length): look for position ids that are all zeros, or a cumsum over a "
    "mask of zeros."
)
ADDED = (
    "Add what the table of positions gives to the embeddings of the tokens in forward(), or remove the table "
    "if positions are encoded otherwise."
)


class Router(NamedTuple):
    """A router that gets no gradient, and how many experts beside it do."""

    name: str
    experts: int
    reached: int

    def message(self, modules: Modules, steps: int) -> str:
        """What is wrong."""
        return (
            f"{self.name} had no gradient at any of {steps} saved steps, while {self.reached} of "
            f"{self.experts} experts beside it learn: {modules.described(modules.layer_of(self.name))} never "
            "learns which expert to choose"
        )

    def why(self, steps: int) -> str:
        """The numbers that convince."""
        return (
            f"0 of {steps} saved steps have a gradient of the router; {self.reached} of {self.experts} "
            "experts have one"
        )


def routers(seen: ObservedStep, table: Parameters, learning: Collection[str]) -> Iterator[Router]:
    """Yield the trained routers that a step computes with, beside experts of which two or more learn."""
    outputs = seen.statistics("outputs")
    named = seen.shared_by_layout.get("routers")
    if named is None:
        named = seen.shared_by_layout["routers"] = _beside_experts(table)
    for place, experts in named:
        given = f"{table.layers[place]}_output_0"
        is_trained = not table.is_frozen[place] and table.present[place] and table.owners[place] >= 0
        if not is_trained or outputs is None or given not in outputs or not outputs.row(given)["count"] > 0:
            continue
        reached = sum(any(table.names[at] in learning for at in own) for own in experts.values())
        if reached >= 2:
            yield Router(table.names[place], len(experts), reached)


def _beside_experts(table: Parameters) -> list[tuple[int, Mapping[int, list[int]]]]:
    """The weights of routers, each with the experts of its layer."""
    found: list[tuple[int, Mapping[int, list[int]]]] = []
    groups = experts_of(table)
    for place in where(table.is_weight):
        layer = table.names[place].rpartition(".")[0]
        if not _ROUTER.search(layer) or _INSIDE.search(layer):
            continue
        beside = [
            experts for name, experts in groups.items() if _parent(name.removesuffix(".#")) == _parent(layer)
        ]
        found += [(place, beside[0])] if beside else []
    return found


def _parent(name: str) -> str:
    return re.split(r"[._](?=[^._]*$)", name)[0]


class Positions(NamedTuple):
    """A table of positions of which a step uses one row."""

    name: str
    rows: int
    tokens: int

    def message(self, modules: Modules) -> str:
        """What is wrong."""
        return (
            f"1 of {self.rows} rows of {self.name} gets a gradient, for rows of {self.tokens} tokens: "
            f"{modules.described(modules.layer_of(self.name))} is given the same position for every token"
        )


def single_positions(seen: ObservedStep, table: Parameters) -> Iterator[Positions]:
    """Yield the tables of positions of which a single row gets a gradient, for rows of several tokens."""
    shapes = seen.facts.get("shapes") or [[]]
    shape = shapes[0]
    if len(shape) < 2 or shape[1] < LEAST_TOKENS:
        return
    for place in where(table.has_gradient & table.is_weight & (table.owners >= 0)):
        rows = int(table.units[place])
        if table.classes[place] != _EMBEDDING or rows < LEAST_POSITIONS:
            continue
        zeros, least = table.gradients[place, COLUMN["zeros"]], table.sizes[place] * (1 - 1 / rows)
        if np.isfinite(zeros) and zeros >= least - 0.5 and _POSITIONS.search(table.names[place].lower()):
            yield Positions(table.names[place], rows, int(shape[1]))


def unused_positions(table: Parameters, reached: Collection[str]) -> list[str]:
    """Return the trained tables of positions without a gradient, if all other weights have had one."""
    trained = ~table.is_frozen & table.present & (table.owners >= 0) & table.is_weight
    names = [table.names[place] for place in where(trained)]
    without = [name for name in names if name not in reached]
    are_all = without and len(without) < len(names) and all(_TABLE.search(name.lower()) for name in without)
    return without if are_all else []


def never_used(name: str, modules: Modules, steps: int) -> tuple[str, int, str, str, str]:
    """Return what is wrong with such a table, since how many steps, the title, the numbers and the advice."""
    return (
        f"{name} had no gradient at any of {steps} saved steps, while all other weights have one: "
        f"{modules.described(modules.layer_of(name))} is not used, and the model does not learn from it in "
        "which order its inputs are",
        steps,
        "Positions are never used",
        f"0 of {steps} saved steps have a gradient of the table of positions",
        ADDED,
    )
