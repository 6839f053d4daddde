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
from smdebug_default_rules.tensors import Parameters

LEAST_POSITIONS, LEAST_TOKENS = 8, 4
_ROUTER = re.compile(r"(^|[._])(router|gate|gating|routing)(\.[._\w]*)?$", re.IGNORECASE)
_INSIDE = re.compile(r"expert\w*[._]\d+[._]", re.IGNORECASE)
"""A gate of an expert's own is no router; the class of the model may be called after its experts."""
_POSITIONS = re.compile(
    r"(^|[._])(wpe|pos|positions?|positional)(_?(embed|embeddings?|encoding))?s?\.weight$"
)
_EMBEDDING = "Embedding"


class Router(NamedTuple):
    """A router that gets no gradient, and how many experts beside it do."""

    name: str
    experts: int
    reached: int


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
