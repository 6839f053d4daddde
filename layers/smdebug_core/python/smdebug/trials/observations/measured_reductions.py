"""Reductions and statistics of a tensor that was measured and not saved, from its row of statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping

from smdebug.numbers.rows import SAMPLE_SIZE
from smdebug.numbers.statistics import Statistics


def statistics_in(row: Mapping[str, float]) -> Statistics:
    """Return the statistics of a value of which only this row is known.

    Infinite values are counted as NaN: the row does not tell them apart.
    """
    odd, number = int(row["non_finite"]), row["count"] - row["non_finite"]

    def of_all(value: float) -> float:
        return math.nan if odd else value

    return Statistics(
        size=int(row["count"]),
        nan=odd,
        infinite=0,
        zeros=int(row["zeros"]),
        min=of_all(row["min"]),
        max=of_all(row["max"]),
        mean=of_all(row["mean"]),
        abs_mean=of_all(row["abs_mean"]),
        variance=of_all(row["std"] ** 2),
        l1=of_all(row["abs_mean"] * number),
        l2=of_all(row["rms"] * math.sqrt(number)),
    )


def reduction_of(row: Mapping[str, float], name: str, *, abs: bool = False) -> float | None:
    """Return the reduction of all values, or with `abs` of their magnitudes; None if the row does not have
    it.

    With values that are not finite it is NaN, since the row describes the finite ones.
    """
    if row["count"] == 0:
        return None
    number = row["count"] - row["non_finite"]
    found = _of_magnitudes(row, name, number) if abs else _of_values(row, name, number)
    return math.nan if found is not None and row["non_finite"] else found


def _of_values(row: Mapping[str, float], name: str, number: float) -> float | None:
    match name:
        case "min" | "max" | "mean" | "std":
            return row[name]
        case "variance":
            return row["std"] ** 2
        case "sum":
            return row["mean"] * number
        case "median" if row["count"] <= SAMPLE_SIZE:  # of others the row has a sample's
            return row["p50"]
    return _norm(row, name, number)


def _of_magnitudes(row: Mapping[str, float], name: str, number: float) -> float | None:
    variance = max(row["rms"] ** 2 - row["abs_mean"] ** 2, 0.0)
    match name:
        case "max":
            return max(-row["min"], row["max"])
        case "min" if row["zeros"]:
            return 0.0
        case "min" if row["min"] > 0 or row["max"] < 0:
            return min(math.fabs(row["min"]), math.fabs(row["max"]))
        case "mean":
            return row["abs_mean"]
        case "std":
            return math.sqrt(variance)
        case "variance":
            return variance
        case "sum":
            return row["abs_mean"] * number
    return _norm(row, name, number)


def _norm(row: Mapping[str, float], name: str, number: float) -> float | None:
    match name:
        case "l1":
            return row["abs_mean"] * number
        case "l2":
            return row["rms"] * math.sqrt(number)
    return None
