"""Data and trees of XGBoost as arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugValueError
from smdebug.saving.hooks.framework import require


def parse_tree_model(booster: Any, iteration: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return the trees of this round, a row per node, as columns: Tree, Node, ID, Feature …"""
    from smdebug.xgboost.trees import columns_of

    of_round = booster[iteration : iteration + 1]
    dumps = of_round.get_dump(dump_format="json", with_stats=True)
    return columns_of(dumps, iteration * len(dumps))


def get_dmatrix(data_path: str, content_type: str, csv_weights: int = 0) -> Any:
    """Return the data in a file, or in all files of a folder, as a DMatrix.

    `csv`: the first column is the label; with `csv_weights` the second is the weight of the row. `libsvm`:
    `label[:weight] index:value …`, indices beginning with 0 or more.
    """
    require("XGBoost", "xgboost", "xgboost")
    import xgboost

    kind = content_type.split(";")[0].strip().lower().removeprefix("text/").removeprefix("x-")
    path = Path(data_path)
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise SMDebugValueError(f"There is no data in {data_path}")
    if kind == "csv":
        rows = np.concatenate([_csv(file) for file in files])
        first = 2 if csv_weights else 1
        weights = rows[:, 1] if csv_weights else None
        return xgboost.DMatrix(rows[:, first:], label=rows[:, 0], weight=weights)
    if kind == "libsvm":
        return _from_libsvm(files)
    raise SMDebugValueError(f'data is "csv" or "libsvm", not {content_type!r}')


def _csv(path: Path) -> np.ndarray[Any, Any]:
    try:
        rows = np.genfromtxt(path, delimiter=",", dtype=np.float32)
    except ValueError as error:
        raise SMDebugValueError(f"{path} is not a table of numbers: {error}") from error
    return rows.reshape(1, -1) if rows.ndim == 1 else rows


def _from_libsvm(files: list[Path]) -> Any:
    import xgboost

    labels: list[float] = []
    weights: list[float] = []
    rows: list[dict[int, float]] = []
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            words = line.split("#")[0].split()
            if not words:
                continue
            try:
                label, _, weight = words[0].partition(":")
                pairs = (word.split(":") for word in words[1:] if not word.startswith("qid:"))
                rows.append({int(index): float(value) for index, value in pairs})
                labels.append(float(label))
                weights.append(float(weight or 1))
            except ValueError as error:
                raise SMDebugValueError(f"{file}, line {number} is not libsvm: {error}") from error
    width = 1 + max((max(row, default=-1) for row in rows), default=-1)
    values = np.full((len(rows), width), np.nan, np.float32)  # values not listed are missing
    for here, row in enumerate(rows):
        values[here, list(row)] = list(row.values())
    return xgboost.DMatrix(values, label=labels, weight=weights)
