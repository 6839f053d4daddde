"""A condition, such as the class of an image to make, that a model replaces with "none" in every row.

A table has a row for each condition, and one for none. The model is given different conditions, and a single
row gets a gradient. Where all rows of the input have the same condition, that is how it should be.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import Modules, Parameters

LEAST_CONDITIONS, LEAST_ROWS = 3, 8
LEAST_STEPS, LEAST_APART = 10, 50
TITLE = "The condition never reaches the model"
ADVICE = (
    "Check the share of rows whose condition is dropped, such as 0.1: if torch.rand(rows) is compared with "
    "10, for 10 percent, all are, and so they may be by a comparison the wrong way round.",
    "Look for a flag of the sampling without a condition, such as force_drop_ids, that is left on.",
)


class Dropped(NamedTuple):
    """A table of conditions of which a single row is used."""

    name: str
    rows: int
    given: str
    """The input that has the conditions, the lowest and the highest one,"""
    low: int
    high: int
    steps: int

    def message(self, modules: Modules) -> str:
        """What is wrong."""
        return (
            f"1 of {self.rows} rows of {self.name} gets a gradient, while {self.given} has up to "
            f"{self.high - self.low + 1} conditions: {modules.described(modules.layer_of(self.name))} "
            "is told the same one, most likely none, in every row"
        )

    @property
    def why(self) -> str:
        """The numbers that convince."""
        return (
            f"1 of {self.rows} rows is used at each of {self.steps} saved steps, while {self.given} has "
            f"numbers from {self.low} to {self.high}"
        )


def extend(kept: MutableMapping[str, dict[str, Any]], seen: ObservedStep, table: Parameters) -> None:
    """Keep at how many saved steps in a row a table was used for one row, and which conditions were given."""
    given = dict(_given(seen))
    if not given:
        return
    alone = dict(_single_rows(table))
    for name in [known for known in kept if known not in alone]:
        del kept[name]
    for name, rows in alone.items():
        known = kept.setdefault(name, {"rows": rows, "steps": 0, "first": seen.step, "inputs": {}})
        known["steps"] += 1
        for place, (low, high) in given.items():
            before = known["inputs"].get(place, [low, high, 0])
            known["inputs"][place] = [min(low, before[0]), max(high, before[1]), before[2] + (low < high)]


def found(kept: MutableMapping[str, dict[str, Any]], step: int) -> Iterator[Dropped]:
    """Yield the tables whose input has had each of the conditions, and that were used for one row."""
    for name, known in kept.items():
        steps, rows = known["steps"], known["rows"]
        if steps < LEAST_STEPS or step - known["first"] < LEAST_APART:
            continue
        ranges: dict[str, list[int]] = known["inputs"]
        if any(varied < steps and high < rows for _, high, varied in ranges.values()):
            continue  # it may be this input, of which all rows were the same, that the table is asked for
        for place, (low, high, _) in ranges.items():
            if (low, high) in ((0, rows - 2), (1, rows - 1)):
                yield Dropped(name, rows, place, low, high, steps)
                break


def _single_rows(table: Parameters) -> Iterator[tuple[str, int]]:
    """The trained tables of which a single row gets a gradient, and how many rows they have."""
    for place in where(table.has_gradient & table.is_weight & (table.owners >= 0)):
        rows, size = int(table.units[place]), int(table.sizes[place])
        if table.classes[place] != "Embedding" or rows <= LEAST_CONDITIONS:
            continue
        if float(table.gradient("zeros")[place]) >= size - size / rows - 0.5:
            yield table.names[place], rows


def _given(seen: ObservedStep) -> Iterator[tuple[str, tuple[int, int]]]:
    """The inputs of the model that have a whole number for each row, and their range."""
    inputs = seen.statistics("inputs")
    if inputs is None:
        return
    for name, tensor in zip(inputs.names, inputs.tensors, strict=True):
        is_one_each = len(tensor.shape) == 1 or (len(tensor.shape) == 2 and tensor.shape[1] == 1)
        if "int" in tensor.dtype and is_one_each and tensor.shape[0] >= LEAST_ROWS:
            row = inputs.row(name)
            if 0 <= row["min"] <= row["max"]:
                yield name, (int(row["min"]), int(row["max"]))
