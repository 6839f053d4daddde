"""Questions about frameworks that only old code asks, from `smdebug.<framework>.utils`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from smdebug.numbers.reductions import compute_reduction


def get_reduction_of_data(reduction_name: str, tensor_data: Any, tensor_name: str, abs: bool = False) -> Any:
    """Return the reduction of a tensor of PyTorch: `compute_reduction` of its values."""
    if hasattr(tensor_data, "detach"):
        tensor_data = tensor_data.detach().cpu().numpy()
    return compute_reduction(reduction_name, tensor_data, abs)


class TFDistributionStrategy(Enum):
    """How TensorFlow distributes a training."""

    NONE = 0
    PARAMETER_SERVER = 1
    HOROVOD = 2
    MIRRORED = 3
    SMDATAPARALLEL = 4
    UNSUPPORTED = 100


def tensor_can_be_saved(tensor: Any, subgraph: Any = None, unfilled_placeholders: Any = None) -> bool:
    """Return whether the tensor's value needs no placeholder that was not fed."""
    return not unfilled_placeholders


def does_tf_support_mixed_precision_training() -> bool:
    """Return True, as for all supported versions."""
    return True


def _at_least(package: str, minor: int) -> Callable[[], bool]:
    """Return a function that says whether version 1.`minor` or later of the package is installed."""

    def is_installed() -> bool:
        try:
            major, its_minor, *_ = version(package).split(".")
        except PackageNotFoundError:
            return False
        return (int(major), int(its_minor)) >= (1, minor)

    return is_installed


is_pt_1_5 = _at_least("torch", 5)
is_pt_1_6 = _at_least("torch", 6)
is_pt_1_7 = _at_least("torch", 7)
is_pt_1_8 = _at_least("torch", 8)
is_pt_1_9 = _at_least("torch", 9)
is_xgb_1_3_and_later = _at_least("xgboost", 3)
is_xgb_1_5_and_later = _at_least("xgboost", 5)
is_xgb_1_7_and_later = _at_least("xgboost", 7)
