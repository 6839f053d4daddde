"""Small helpers over arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def where(mask: Any) -> list[int]:
    """The places at which the mask is true."""
    found: list[int] = np.flatnonzero(mask).tolist()
    return found
