"""For code written against smdebug: reductions live in `smdebug.numbers.reductions`."""

from smdebug.numbers.reductions import (
    REDUCTIONS_PREFIX,
    get_numpy_reduction,
    get_reduction_tensor_name,
    reverse_reduction_tensor_name,
)

__all__ = [
    "REDUCTIONS_PREFIX",
    "get_numpy_reduction",
    "get_reduction_tensor_name",
    "reverse_reduction_tensor_name",
]
