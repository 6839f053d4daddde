"""The largest recent values of many tensors, in a byte each, as a rule's memory is written at every step."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_QUARTERS = 4  # levels to a factor of two: a peak is off by an eighth at most
_LEAST = -40  # the exponent of the smallest peak; smaller values count as that
_DIGITS = 50  # binary digits of a float64 after its sign, exponent and quarter
_OFFSET = (1023 + _LEAST) * _QUARTERS - 1
_TOP = 255  # a value of 2**23 or more, or of infinity
_NONE = 0
_ENOUGH = 16


class Peaks:
    """The largest recent value of each tensor, as plain data in a dict that a rule keeps.

        self.kept = {}                          # in the constructor
        before = Peaks(self.kept, names, 2)     # at a step: of two statistics
        before.largest(); before.count()        # a row per statistic: NaN and 0 where there was nothing
        before.add(values)

    A peak is forgotten slowly: it halves with every 8 values after it. Names may come, go, and change their
    order.
    """

    def __init__(self, kept: MutableMapping[str, Any], names: Sequence[str], statistics: int):
        self._kept = kept
        known = kept.get("names")
        if known is None:
            rows = np.zeros((2, statistics, len(names)), np.uint8)
        else:
            rows = np.frombuffer(bytes.fromhex(kept["rows"]), np.uint8)
            rows = rows.reshape(2, statistics, -1)
        if known is not None and known != names:
            rows = _aligned(rows, known, names)
        self.names = names
        self._levels, self._counts = rows

    def largest(self) -> NDArray[np.float64]:
        """The peaks of each tensor."""
        found: NDArray[np.float64] = _VALUES[self._levels]
        return found

    def count(self) -> NDArray[np.uint8]:
        """How many values each peak is of; 16 or 17 of more."""
        return self._counts

    def add(self, values: ArrayLike) -> None:
        """Add a row of values per statistic, one for each tensor; NaN if it has none at this step."""
        new = _levels(np.asarray(values, np.float64))
        has_one = new != _NONE
        # How large a value at the top was is not known, so it is not forgotten.
        fades = has_one & (self._counts % 2 == 1) & (self._levels > 1) & (self._levels < _TOP)
        self._levels = np.maximum(self._levels - fades, new).astype(np.uint8)
        counts = self._counts + has_one
        self._counts = np.where(counts > _ENOUGH + 1, _ENOUGH, counts).astype(np.uint8)
        if self._kept.get("names") != self.names:
            self._kept["names"] = list(self.names)
        # Hexadecimal digits pack better than base64, in which equal bytes differ by their place.
        self._kept["rows"] = (self._levels.tobytes() + self._counts.tobytes()).hex()


def _levels(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The level of each value, read from its bits: the exponent, and the first two digits of the fraction."""
    sizes = np.abs(values)
    levels = (sizes.view(np.int64) >> _DIGITS) - _OFFSET
    np.minimum(np.maximum(levels, 1, out=levels), _TOP, out=levels)
    levels[np.isnan(sizes)] = _NONE
    return levels


def _values_of_levels() -> NDArray[np.float64]:
    """The middle of each level; NaN for none, and infinity for the top one."""
    exponents, quarters = np.divmod(np.arange(_TOP + 1) - 1, _QUARTERS)
    values: NDArray[np.float64] = np.ldexp(1 + (quarters + 0.5) / _QUARTERS, exponents + _LEAST)
    values[_NONE], values[_TOP] = np.nan, np.inf
    return values


_VALUES: NDArray[np.float64] = _values_of_levels()


def _aligned(rows: NDArray[np.uint8], known: Sequence[str], wanted: Sequence[str]) -> NDArray[np.uint8]:
    places = {name: place for place, name in enumerate(known)}
    found = np.zeros((*rows.shape[:-1], len(wanted)), np.uint8)
    for column, name in enumerate(wanted):
        if name in places:
            found[..., column] = rows[..., places[name]]
    return found
