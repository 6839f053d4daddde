"""Arrays of numbers as JSON holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import as_json_number


def numbers(values: NDArray[Any]) -> list[float | None]:
    """Return numbers as JSON can hold them."""
    return list(map(as_json_number, np.asarray(values).tolist()))
