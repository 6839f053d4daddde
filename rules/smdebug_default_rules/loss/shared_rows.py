"""Rows that a training is validated with although it learns from them, recognised by their digests."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.one_step import ObservedStep

MOST_KNOWN, MOST_EVALUATED, MOST_BATCHES, RECENT = 320, 64, 24, 12
LEAST_OF_BATCH, LEAST_DIGESTS, LEAST_DISTINCT, LEAST_PASSES = 4, 24, 10, 3
LEAST_FEATURES, LEAST_TOKENS, LEAST_VALUES = 4, 16, 16
"""Rows of fewer features, or of few different values, are equal by chance or on purpose, as in a grid."""
COVERED = 0.3
"""This share of the training's rows has to be known."""
SHARED = 0.1
"""In each batch of the validation, this share at least is of the training."""
SMALLER = 0.6
"""A validation has fewer rows than this share of the training's: others show what was learnt, on purpose."""


class Shared(NamedTuple):
    """Rows of the validation that the training has, too."""

    shared: int
    rows: int
    share: float
    """Of all rows of the validation, with those of the training that were not seen so far."""
    since: int


def empty() -> dict[str, Any]:
    """What is kept of rows of which nothing was seen yet."""
    return {
        "known": [],
        "limit": 1 << 32,
        "recent": [],
        "evaluated": [],
        "batches": [],
        "rows": 0,
        "passes": 0,
        "in_pass": False,
        "since": -1,
    }


def add(kept: MutableMapping[str, Any], seen: ObservedStep) -> None:
    """Add the digests of a step's rows."""
    digests, are_all = seen.row_digests
    if not digests or not _can_be_told_apart(seen):
        return
    if seen.mode is ModeKeys.EVAL:
        _evaluated(kept, seen, [digest for digest in digests if digest <= kept["limit"]])
        return
    kept["in_pass"] = False
    if not are_all:  # this batch may have larger ones, which were not saved
        kept["limit"] = min(kept["limit"], digests[-1])
    considered = [digest for digest in digests if digest <= kept["limit"]]
    new = len(set(considered).difference(kept["known"]))
    kept["recent"] = [*kept["recent"], [len(considered), new]][-RECENT:]
    known = sorted(digest for digest in {*kept["known"], *considered} if digest <= kept["limit"])
    kept["known"] = known[:MOST_KNOWN]
    if len(known) > MOST_KNOWN:
        kept["limit"] = kept["known"][-1]


def _evaluated(kept: MutableMapping[str, Any], seen: ObservedStep, digests: Sequence[int]) -> None:
    kept["passes"] += not kept["in_pass"]
    kept["in_pass"] = True
    kept["rows"] = max(kept["rows"], int(seen.facts["shapes"][0][0]))
    kept["since"] = seen.step if kept["since"] < 0 else kept["since"]
    if len(digests) >= LEAST_OF_BATCH:
        batch = [len(digests), len(set(digests).intersection(kept["known"]))]
        kept["batches"] = [*kept["batches"], batch][-MOST_BATCHES:]
        kept["evaluated"] = sorted({*kept["evaluated"], *digests})[:MOST_EVALUATED]


def shared(kept: Mapping[str, Any], batches_of_a_pass: int) -> Shared | None:
    """Return how many rows of the validation are of the training, if all its batches have some."""
    covered, known, batches = coverage(kept["recent"]), set(kept["known"]), kept["batches"]
    evaluated = {digest for digest in kept["evaluated"] if digest <= kept["limit"]}
    rows = sum(count for count, _ in batches)
    is_enough = kept["passes"] >= LEAST_PASSES and rows >= LEAST_DIGESTS and len(evaluated) >= LEAST_DISTINCT
    if not is_enough or covered < COVERED:
        return None
    if any(hits < SHARED * covered * count for count, hits in batches):
        return None
    trained = len(known) / covered * (1 << 32) / kept["limit"]
    if kept["rows"] * batches_of_a_pass > SMALLER * trained:
        return None
    found = len(evaluated & known)
    if found < LEAST_OF_BATCH:
        return None
    return Shared(found, len(evaluated), min(1.0, found / len(evaluated) / covered), kept["since"])


def coverage(recent: Sequence[Sequence[int]]) -> float:
    """The share of the training's rows that are known, as the newest batches show."""
    rows = sum(count for count, _ in recent)
    return 1 - sum(new for _, new in recent) / rows if rows else 0.0


def _can_be_told_apart(seen: ObservedStep) -> bool:
    """Whether rows have so many values that those of two data sets are not equal by chance."""
    inputs, shapes = seen.statistics("inputs"), seen.facts.get("shapes") or [[]]
    if inputs is None or len(shapes[0]) < 2:
        return False
    features = int(np.prod(shapes[0][1:]))
    if "float" not in inputs.tensors[0].dtype:
        return features >= LEAST_TOKENS
    sample = seen.samples("inputs").get(inputs.names[0])
    return features >= LEAST_FEATURES and sample is not None and np.unique(sample).size >= LEAST_VALUES
