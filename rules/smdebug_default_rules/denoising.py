"""Models that tell noise from data: they are given noisy rows, and a time for each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smdebug.trials.observations.one_step import ObservedStep

LEAST_COLUMNS = 2
ERRORS = ("mean squared error", "mean absolute error", "smooth L1", "Huber")
"""The criteria that noise is learnt with."""


def denoises(seen: ObservedStep) -> bool:
    """Whether the model is given rows of the form of its targets, and a time for each of them."""
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    shapes: list[list[int]] = seen.facts.get("shapes") or []
    return any(
        term.get("columns", 0) >= LEAST_COLUMNS
        and has_time(shapes, term.get("target_rows", 0), term["columns"])
        for term in terms
    )


def has_time(shapes: Sequence[Sequence[int]], rows: int, columns: int) -> bool:
    """Whether an input has the form of the targets, and the time of each row is beside it or its last column.

    Without a time it is an autoencoder that is given noisy inputs, whose targets may be a whole data set.
    """
    inputs = [math.prod(shape[1:]) for shape in shapes if shape and shape[0] == rows]
    return columns + 1 in inputs or (columns in inputs and len(inputs) > 1)
