"""An old import path: reading tensors is now in `selection` and `measurements`."""

from smdebug.rules.measurements import (
    MISSING,
    WorkerStatistics,
    WorkerValue,
    each_worker,
    measure,
    read_values,
    reduction_of,
    reductions_of,
    single,
    step_in_mode,
    step_label,
    steps_between,
    tensor_label,
    value_of,
)
from smdebug.rules.selection import TensorSelection

Seen = WorkerValue
Measured = WorkerStatistics
look = read_values
named = tensor_label
step_told = step_label
step_within = step_in_mode

__all__ = [
    "MISSING",
    "Measured",
    "Seen",
    "TensorSelection",
    "each_worker",
    "look",
    "measure",
    "named",
    "reduction_of",
    "reductions_of",
    "single",
    "step_told",
    "step_within",
    "steps_between",
    "value_of",
]
