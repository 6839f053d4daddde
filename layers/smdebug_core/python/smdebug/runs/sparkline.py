"""A curve in one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
NOT_FINITE = "!"
_FAR_APART = 100.0


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the values as at most `width` blocks; a part with a value that is not finite is `!`.

    Each block has the largest value of its part, so that no spike is lost. The scale is logarithmic if the
    values are positive and far apart.
    """
    width = max(0, width)
    if not values or not width:
        return ""
    count = min(width, len(values))
    edges = [round(at * len(values) / count) for at in range(count + 1)]
    tops = [
        max(part) if all(map(math.isfinite, part)) else math.nan
        for part in (values[low:high] for low, high in pairwise(edges))
    ]
    finite = [top for top in tops if math.isfinite(top)]
    if finite and min(finite) > 0 and max(finite) > _FAR_APART * min(finite):
        tops = [math.log(top) if math.isfinite(top) else top for top in tops]
        finite = [top for top in tops if math.isfinite(top)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    reach = (high / 2 - low / 2) or 1.0  # halves: the difference of two floats may be none
    return "".join(
        BLOCKS[min(7, int((top / 2 - low / 2) / reach * 8))] if math.isfinite(top) else NOT_FINITE
        for top in tops
    )
