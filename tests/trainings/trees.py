"""Boosted trees that are really grown, and saved as the XGBoost hook would."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tests.rules.made_runs import MadeRun

COLLECTIONS = {
    "trees": ["^trees/"],
    "feature_importance": ["^feature_importance/"],
    "metrics": ["-rmse$"],
}


def boosted(*, depth: int, relevant: int, seed: int, rounds: int = 4, features: int = 12) -> MadeRun:
    """Trees of that depth for a target that depends on that many features."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(400, features))
    y = x[:, :relevant] @ random.uniform(0.8, 1.2, relevant) + random.normal(0, 0.05, 400)
    left, splits = y - y.mean(), Counter(dict.fromkeys(range(features), 0))
    run = MadeRun(collections=COLLECTIONS)
    for step in range(rounds):
        nodes = grown(x, left, depth)
        left = left - 0.5 * predicted(nodes, x)
        splits.update(node["feature"] for node in nodes.values() if "feature" in node)
        total = sum(splits.values())
        columns = {"Node": list(nodes), "ID": [f"0-{node}" for node in nodes]}
        for column in ("yes", "no"):
            columns[column.title()] = [
                f"0-{node[column]}" if column in node else "" for node in nodes.values()
            ]
        saved = {f"trees/{name}": np.array(values) for name, values in columns.items()}
        saved |= {
            f"feature_importance/weight/f{feature}": np.float32(count / total)
            for feature, count in splits.items()
        }
        run.save(step, saved | {"train-rmse": np.float32(np.sqrt(np.mean(left**2)))})
    return run.end()


def grown(x: Any, y: Any, depth: int) -> dict[int, dict[str, Any]]:
    """A tree of the best splits, numbered level by level."""
    nodes: dict[int, dict[str, Any]] = {}
    level = [(0, np.arange(len(y)))]
    for below in range(depth, -1, -1):
        following = []
        for node, rows in level:
            nodes[node] = {"value": float(y[rows].mean())}
            split = best_split(x[rows], y[rows]) if below and len(rows) >= 4 else None
            if split is None:
                continue
            feature, border = split
            yes, no = 2 * node + 1, 2 * node + 2
            nodes[node].update(feature=feature, border=border, yes=yes, no=no)
            is_left = x[rows, feature] < border
            following += [(yes, rows[is_left]), (no, rows[~is_left])]
        level = following
    return nodes


def best_split(x: Any, y: Any) -> tuple[int, float] | None:
    """The feature and its border that leave the least error, of some borders each."""
    borders = np.quantile(x, (0.2, 0.35, 0.5, 0.65, 0.8), axis=0)
    is_left = (x[:, None, :] < borders).astype(float)
    counts, sums = is_left.sum(axis=0), np.tensordot(y, is_left, axes=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        explained = sums**2 / counts + (y.sum() - sums) ** 2 / (len(y) - counts)
    explained[(counts == 0) | (counts == len(y))] = -np.inf
    border, feature = np.unravel_index(np.argmax(explained), explained.shape)
    if explained[border, feature] == -np.inf:
        return None
    return int(feature), float(borders[border, feature])


def predicted(nodes: dict[int, dict[str, Any]], x: Any) -> Any:
    """Return the tree's prediction for each row."""
    at = np.zeros(len(x), int)
    for node, columns in nodes.items():
        if "feature" in columns:
            here = at == node
            at[here] = np.where(
                x[here, columns["feature"]] < columns["border"], columns["yes"], columns["no"]
            )
    return np.array([nodes[node]["value"] for node in at])
