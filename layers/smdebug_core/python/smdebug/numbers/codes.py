"""What codes say about the inputs: the divergence of latent distributions, how alike embeddings are.

And what the loss of a policy makes of the probabilities of its actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ACTIVE = 0.01
"""A latent dimension with less divergence than this, in nats, says nothing."""
_LEAST_ROWS, _LEAST_COLUMNS = 8, 4
_MOST_ROWS, _MOST_OF_LABELS = 64, 3
"""Of so many rows the values are counted: those of labels are smoothed to two, and mixed to three."""


def divergence_facts(variances: Sequence[Floats], squared: Sequence[Floats]) -> dict[str, Any]:
    """Describe the Kullback-Leibler divergence of normal distributions from a standard one.

    A divergence is computed from variances and squares of means of one shape: of several candidates, the
    first pair that fits. The square of a deviation, which is the variance itself, is no mean.
    """
    for variance in variances:
        if not np.isfinite(variance).all() or (variance <= 0).any() or variance.shape[-1] < 2:
            continue
        for mean in squared:
            if mean.shape != variance.shape or not np.isfinite(mean).all():
                continue
            if np.allclose(mean * mean, variance) and not np.allclose(variance, 0):
                continue
            each = 0.5 * (mean * mean + variance - 1 - np.log(variance))
            of_dimensions = each.reshape(-1, each.shape[-1]).mean(0)
            return {
                "latent": {
                    "dimensions": len(of_dimensions),
                    "divergence": float(of_dimensions.sum()),
                    "largest": float(of_dimensions.max()),
                    "active": int((of_dimensions > ACTIVE).sum()),
                }
            }
    return {}


def embedding_facts(embeddings: Sequence[Floats]) -> dict[str, Any]:
    """Describe how alike the directions of embeddings are: 1 if all rows have the same, about 0 if any."""
    usable = [
        rows
        for rows in embeddings
        if rows.ndim == 2 and rows.shape[0] >= _LEAST_ROWS and rows.shape[1] >= _LEAST_COLUMNS
    ]
    if not usable:
        return {}
    alike = [alignment(rows) for rows in usable]
    rows, columns = usable[0].shape
    return {"embedding": {"rows": rows, "columns": columns, "alignment": round(min(alike), 6)}}


def policy_facts(
    products: Sequence[tuple[float, Floats, Floats]],
    weights: Sequence[Floats],
    scales: Sequence[tuple[float, Floats]] = (),
) -> dict[str, Any]:
    """Describe the entropy in a loss, whether the loss falls with it, and the advantages of the actions.

    `products` have the sign with which probabilities times their logarithms, in any order, are in the loss,
    and `scales` that of the logarithms of scales of normal distributions.
    """
    found = [
        (sign, negative)
        for sign, code, other in products
        if (negative := _negative_entropy(code, other)) is not None
    ]
    known = [values for values in weights if np.isfinite(values).all()]
    spreads = [(sign, each) for sign, each in scales if np.isfinite(each).all() and (each > 0).all()]
    if not known or not (found or spreads):
        return {}
    values = max(known, key=lambda each: float(np.ptp(each)))
    if not found:
        signs = {1.0 if sign < 0 else -1.0 for sign, _ in spreads}
        return {
            "actions": {
                "bonus": signs.pop() if len(signs) == 1 else 0.0,
                "log_scale": float(np.mean([np.log(each).mean() for _, each in spreads])),
                "highest": float(values.max()),
                "lowest": float(values.min()),
            }
        }
    signs = {1.0 if sign > 0 else -1.0 for sign, _ in found}
    return {
        "policy": {
            "bonus": signs.pop() if len(signs) == 1 else 0.0,
            "choices": products[0][1].shape[-1],
            "entropy": -sum(float(negative) for _, negative in found) / len(found),
            "highest": float(values.max()),
            "lowest": float(values.min()),
        }
    }


def soft_target_facts(targets: Sequence[Floats]) -> dict[str, Any]:
    """Say whether targets are probabilities that a model gives, and not labels, smoothed or mixed ones."""
    are_soft = bool(targets) and all(
        rows.ndim == 2
        and rows.shape[1] >= _LEAST_COLUMNS
        and (rows >= 0).all()
        and np.allclose(rows.sum(1), 1, atol=1e-3)
        and np.median([len(np.unique(row)) for row in rows[:_MOST_ROWS]]) > _MOST_OF_LABELS
        for rows in targets
    )
    return {"soft_targets": True} if are_soft else {}


def _negative_entropy(code: Floats, other: Floats) -> float | None:
    """The mean of the sums of probabilities times their logarithms; None if the two are not these."""
    for shares, logarithms in ((code, other), (other, code)):
        if (shares < 0).any() or not np.allclose(shares.sum(-1), 1, atol=1e-3):
            continue
        if np.allclose(np.exp(np.minimum(logarithms, 1)), shares, atol=1e-3):
            return float((shares * np.maximum(logarithms, -1e9)).sum(-1).mean())
    return None


def alignment(rows: Floats) -> float:
    """Return the mean cosine of two different rows."""
    sizes = np.sqrt((rows * rows).sum(1, keepdims=True))
    known = rows[np.isfinite(sizes[:, 0]) & (sizes[:, 0] > 0)]
    if len(known) < 2:
        return 1.0
    unit = known / np.sqrt((known * known).sum(1, keepdims=True))
    count = len(unit)
    total = float((unit.sum(0) ** 2).sum())
    return (total - count) / (count * (count - 1))
