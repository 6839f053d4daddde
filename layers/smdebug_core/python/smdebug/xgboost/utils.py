"""Small questions about XGBoost."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from smdebug.saving.framework import later

parse_tree_model = later("XGBoost", "parse_tree_model")
get_dmatrix = later("XGBoost", "get_dmatrix")


def _is_xgb(minor: int) -> bool:
    try:
        major, its_minor, *_ = version("xgboost").split(".")
    except PackageNotFoundError:
        return False
    return (int(major), int(its_minor)) >= (1, minor)


def is_xgb_1_3_and_later() -> bool:
    return _is_xgb(3)


def is_xgb_1_5_and_later() -> bool:
    return _is_xgb(5)


def is_xgb_1_7_and_later() -> bool:
    return _is_xgb(7)
