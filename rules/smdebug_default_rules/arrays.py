"""Small helpers over arrays of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def where(mask: Any) -> list[int]:
    """The places at which the mask is true."""
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


def rounded(values: Iterable[float], digits: int = 5) -> list[float]:
    """Round values to that many digits, as rules keep them: what they keep is written at every saved step."""
    return [float(f"{value:.{digits}g}") for value in values]
