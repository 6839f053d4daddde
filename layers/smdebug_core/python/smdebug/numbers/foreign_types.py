"""Types that numpy has only through another package: bfloat16 and the 8-bit floats of `ml_dtypes`."""

from __future__ import annotations

from typing import Final

FIRST_FOREIGN_TYPE: Final = 256  # NPY_USERDEF: a type's `num` from which on it is foreign
