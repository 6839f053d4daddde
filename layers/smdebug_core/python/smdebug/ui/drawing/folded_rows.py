"""Rows of a heat map for very many tensors: those of one module are joined, with the extremes of all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MOST_TENSORS = 20_000
"""Up to this many tensors of a kind, each has a row."""
MOST_ROWS = 4_000
_PARTS = re.compile(r"[./]")


class FoldedRows:
    """The rows of one kind: each is a tensor, or a module with all of its tensors."""

    def __init__(self, names: Sequence[str], most: int | None = None):
        self.tensors = list(names)
        keys = _keys(self.tensors, most or MOST_ROWS)
        counts = Counter(keys)
        places = {key: at for at, key in enumerate(counts)}
        self.names = [_label(key, counts[key]) for key in counts]
        only = {key: name for key, name in zip(keys, self.tensors, strict=True) if counts[key] == 1}
        for key, name in only.items():
            self.names[places[key]] = name
        self._row_of = np.array([places[key] for key in keys], np.int64)
        self._order = np.argsort(self._row_of, kind="stable")
        self._edges = np.searchsorted(self._row_of[self._order], np.arange(len(self.names)))

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest of every statistic in each row."""
        sorted_values = values[self._order]
        low = np.fmin.reduceat(sorted_values, self._edges)
        return low, np.fmax.reduceat(sorted_values, self._edges)

    def members(self, row: str) -> list[str]:
        """Return the tensors of a row; none if there is no such row."""
        if row not in self.names:
            return []
        place = self.names.index(row)
        return [self.tensors[at] for at in np.flatnonzero(self._row_of == place)]


def _keys(names: Sequence[str], most: int) -> list[str]:
    """Return which row each tensor belongs to: its module, as deep as there are at most `most` of them."""
    ends = [[found.start() for found in _PARTS.finditer(name)] + [len(name)] for name in names]
    best: list[str] | None = None
    for depth in range(max(map(len, ends), default=0)):
        keys = [name[: at[min(depth, len(at) - 1)]] for name, at in zip(names, ends, strict=True)]
        if len(set(keys)) > most:
            break
        best = keys
    if best is not None:
        return best
    size = -(-len(names) // most)  # no modules: neighbours are joined
    firsts = [names[at - at % size] for at in range(len(names))]
    lasts = [names[min(len(names) - 1, at - at % size + size - 1)] for at in range(len(names))]
    return [f"{first} … {last}" for first, last in zip(firsts, lasts, strict=True)]


def _label(key: str, count: int) -> str:
    return f"{key} ({count:,} tensors)"
