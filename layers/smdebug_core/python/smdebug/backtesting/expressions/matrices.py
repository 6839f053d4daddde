"""Expressions over many runs at once: a row for each run, a column for each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smdebug.backtesting.expressions.grammar import (
    COMPARISONS,
    IS_NAN,
    STEP,
    WINDOWED,
    Call,
    Column,
    Node,
    Number,
)
from smdebug.backtesting.expressions.rolling import Matrix, rolled

Truths = NDArray[np.bool_]

_OPERATORS: Mapping[str, Callable[..., Matrix]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "abs": np.abs,
    "log": np.log,
    "best": lambda values: np.fmin.accumulate(values, axis=1),
}
_COMPARED: Mapping[str, Callable[..., Truths]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True)
class Checked:
    """Where a condition holds, and the number that it compares with its limit, if it compares one."""

    holds: Truths
    values: Matrix | None
    """NaN where other conditions, joined by `and`, do not hold."""
    is_above: bool
    statistic: str
    limit: float | None


def check(condition: Call, columns: Mapping[str, Matrix], steps: Matrix) -> Checked:
    """Return where the condition holds, for runs of as many steps each."""
    with np.errstate(all="ignore"):
        runs = _Runs({f"series:{STEP}": steps, **columns}, steps.shape)
        holds = runs.truths(condition)
        comparison, others = _comparison(condition)
        if comparison is None:
            return Checked(holds, None, True, condition.text, None)
        left, right = comparison.parts
        values, limit, statistic = _compared(left, right, runs)
        values = np.broadcast_to(values, holds.shape).copy()
        for other in others:
            values[~runs.truths(other)] = math.nan
        return Checked(holds, values, comparison.name.startswith(">"), statistic, limit)


def _comparison(condition: Call) -> tuple[Call | None, list[Call]]:
    """Return the first comparison of a size in conditions joined by `and`, and the other conditions."""
    parts = _joined(condition)
    first = next((part for part in parts if part.name in ("<", "<=", ">", ">=")), None)
    return first, [part for part in parts if part is not first]


def _joined(condition: Call) -> list[Call]:
    if condition.name != "and":
        return [condition]
    return [each for part in condition.parts if isinstance(part, Call) for each in _joined(part)]


def _compared(left: Node, right: Node, runs: _Runs) -> tuple[Matrix, float, str]:
    """Return the number, its limit and what it is: of `a > 3 * b` it is `a / b`, and the limit 3."""
    if isinstance(right, Number):
        return runs.numbers(left), right.value, left.text
    if isinstance(right, Call) and right.name == "*":
        for factor, rest in (right.parts, right.parts[::-1]):
            if isinstance(factor, Number) and not isinstance(rest, Number):
                divisor = runs.numbers(rest)
                # Where it is not positive, the quotient would turn the comparison round.
                ratio = np.where(divisor > 0, runs.numbers(left) / divisor, math.nan)
                return ratio, factor.value, f"{left.text} / {rest.text}"
    return runs.numbers(left) - runs.numbers(right), 0.0, f"{left.text} - {right.text}"


class _Runs:
    """The columns of runs, and what was computed of them: equal parts of an expression once."""

    def __init__(self, columns: Mapping[str, Matrix], shape: tuple[int, ...]):
        self._columns = columns
        self._shape = shape
        self._known: dict[Node, Matrix] = {}

    def truths(self, node: Node) -> Truths:
        """Return where a condition holds."""
        assert isinstance(node, Call)  # the grammar sees to it
        if node.name == IS_NAN:
            return np.isnan(self.numbers(node.parts[0]))
        if node.name in COMPARISONS:
            return _COMPARED[node.name](*map(self.numbers, node.parts))
        parts = [self.truths(part) for part in node.parts]
        if node.name == "not":
            return ~parts[0]
        return parts[0] & parts[1] if node.name == "and" else parts[0] | parts[1]

    def numbers(self, node: Node) -> Matrix:
        """Return the number of each run and step."""
        if isinstance(node, Number):
            return np.broadcast_to(np.float64(node.value), self._shape)
        if isinstance(node, Column):
            return self._columns[node.key]
        if node not in self._known:
            self._known[node] = self._computed(node)
        return self._known[node]

    def _computed(self, node: Call) -> Matrix:
        values = self.numbers(node.parts[0])
        if node.name == "diff":
            return values - _lagged(values, 1)
        if node.name in WINDOWED:
            window = node.parts[1]
            assert isinstance(window, Number)
            steps = int(window.value)
            return _lagged(values, steps) if node.name == "lag" else rolled(node.name, values, steps)
        return _OPERATORS[node.name](values, *map(self.numbers, node.parts[1:]))


def _lagged(values: Matrix, steps: int) -> Matrix:
    found = np.full(values.shape, math.nan)
    found[:, steps:] = values[:, :-steps]
    return found
