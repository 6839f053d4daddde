"""Helpers for PyTorch."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from smdebug.numbers.reductions import compute_reduction


def get_reduction_of_data(
    reduction_name: str, tensor_data: Any, tensor_name: str, abs: bool = False
) -> Any:
    """Return the reduction of a tensor: `compute_reduction` of its values."""
    if hasattr(tensor_data, "detach"):
        tensor_data = tensor_data.detach().cpu().numpy()
    return compute_reduction(reduction_name, tensor_data, abs)


def _is_pt(minor: int) -> bool:
    """Return whether PyTorch 1.`minor` or later is installed."""
    try:
        major, its_minor, *_ = version("torch").split(".")
    except PackageNotFoundError:
        return False
    return (int(major), int(its_minor)) >= (1, minor)


def is_pt_1_5() -> bool:
    return _is_pt(5)


def is_pt_1_6() -> bool:
    return _is_pt(6)


def is_pt_1_7() -> bool:
    return _is_pt(7)


def is_pt_1_8() -> bool:
    return _is_pt(8)


def is_pt_1_9() -> bool:
    return _is_pt(9)
