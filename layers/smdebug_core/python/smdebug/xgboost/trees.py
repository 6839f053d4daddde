"""The trees of a boosting round as columns, with a row per node."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

COLUMNS = (
    "Tree",
    "Node",
    "ID",
    "Feature",
    "Split",
    "Yes",
    "No",
    "Missing",
    "Gain",
    "Cover",
    "Category",
)
_NOTHING = "nan"  # in a leaf, in place of the nodes that a split names

Columns = dict[str, np.ndarray[Any, Any]]


def columns_of(dumps: list[str], first_tree: int) -> Columns:
    """Yield the nodes of trees that XGBoost has dumped as JSON, numbered from the given one on."""
    rows = [
        row
        for number, dump in enumerate(dumps, start=first_tree)
        for row in sorted(_rows(json.loads(dump), number), key=lambda row: int(row["Node"]))
    ]
    return {name: np.asarray([row[name] for row in rows]) for name in COLUMNS}


def _rows(node: Mapping[str, Any], tree: int) -> Iterator[dict[str, Any]]:
    is_leaf = "leaf" in node
    condition = node.get("split_condition", math.nan)
    categories = condition if isinstance(condition, list) else None

    def named(branch: str) -> str:
        return f"{tree}-{node[branch]}" if branch in node else _NOTHING

    yield {
        "Tree": tree,
        "Node": int(node["nodeid"]),
        "ID": f"{tree}-{node['nodeid']}",
        "Feature": "Leaf" if is_leaf else node["split"],
        "Split": math.nan if is_leaf or categories is not None else float(condition),
        "Yes": named("yes"),
        "No": named("no"),
        "Missing": named("missing"),
        "Gain": _number(node["leaf"] if is_leaf else node.get("gain", math.nan)),
        "Cover": float(node.get("cover", math.nan)),
        "Category": _NOTHING if categories is None else ",".join(map(str, categories)),
    }
    for child in node.get("children", ()):
        yield from _rows(child, tree)


def _number(leaf: Any) -> float:
    """Return the value of a leaf; the mean if it has several outputs."""
    return float(np.mean(leaf))
