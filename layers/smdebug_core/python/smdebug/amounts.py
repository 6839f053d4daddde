"""Counts, numbers and sizes as people read them."""

from __future__ import annotations

import math


def counted(count: int, noun: str) -> str:
    """Return the count with its noun: `1 step`, `2,000 steps`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number(value: float | None) -> str:
    """Return the value with four significant digits; "" for None."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return f"{value:.4g}"


def size(count: int) -> str:
    """Return a number of bytes in the largest unit that fits: `512 B`, `1.07 KB`."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def as_json_number(value: float) -> float | None:
    """Return the value with seven significant digits; None for NaN and infinity, which JSON lacks."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
