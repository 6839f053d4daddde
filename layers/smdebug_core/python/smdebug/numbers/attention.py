"""What attention looks at: later tokens, padding alone, or other rows of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[Any]
_LEAST_COUNTED = 8


class Seen(NamedTuple):
    """Which keys some queries of one attention have weights for."""

    length: int
    is_causal: bool = False
    sees_all: bool = False
    queries: NDArray[Any] | None = None
    """The places of the queries."""
    keys: NDArray[np.bool_] | None = None
    """Whether each key has a weight, for each row of the batch and each query; in any of the heads."""


def attention_facts(
    found: Sequence[Seen],
    rows: int,
    tokens: int,
    ids: Ids | None,
    labels: Ids | None,
    ignored: int | None,
    over_queries: int = 0,
) -> dict[str, Any] | None:
    """Describe attentions of a batch of that many rows and tokens; None if nothing is known of them.

    `lengths` are the lengths of what is attended to. `future` is the share of the tokens with a label that
    see a later one, in the attention that hides most; `padding_alone` whether nothing but the padding at the
    ends of rows is seen in any of them. `over_queries` is how many of them have weights that sum to 1 over
    the tokens that look.
    """
    of_tokens = [seen for seen in found if seen.length == tokens and tokens != rows]
    of_tokens = of_tokens or [seen for seen in found if seen.length == tokens]
    facts: dict[str, Any] = {
        "lengths": sorted({seen.length for seen in found}),
        "count": len(found),
        "rows": rows,
        "tokens": tokens,
    }
    if over_queries:
        facts["over_queries"] = over_queries
    shares = [_future(seen, tokens, rows, labels, ignored) for seen in of_tokens]
    known = [share for share in shares if share is not None]
    if known and len(known) == len(shares):
        facts["future"] = round(min(known), 4)
    if ids is not None:
        alone = [_padding_alone(seen, ids) for seen in of_tokens]
        if alone and all(share is not None for share in alone):
            facts["padding_alone"] = all(alone)
    return facts


def _future(seen: Seen, tokens: int, rows: int, labels: Ids | None, ignored: int | None) -> float | None:
    """The share of the queries with a label that see a later token."""
    if seen.is_causal:
        return 0.0
    if seen.sees_all:
        return 1.0
    if seen.keys is None or seen.queries is None:
        return None
    later = np.arange(seen.length)[None, :] > seen.queries[:, None]
    sees: NDArray[np.bool_] = np.any(seen.keys & later[None], axis=2)
    counts: NDArray[np.bool_] = np.broadcast_to(seen.queries < seen.length - 1, sees.shape)
    counted = None if labels is None else _counted(labels, rows, ignored)
    if counted is not None:
        within = seen.queries < counted.shape[1]
        counts = counts & within & np.take(counted[: len(sees)], np.where(within, seen.queries, 0), axis=1)
    total = int(counts.sum())
    return float((sees & counts).sum() / total) if total >= _LEAST_COUNTED else None


def _counted(labels: Ids, rows: int, ignored: int | None) -> NDArray[np.bool_] | None:
    if labels.size % rows or labels.size == rows:
        return None
    of_rows = labels.reshape(rows, -1)
    counts: NDArray[np.bool_] = of_rows >= 0
    if ignored is not None and ignored >= 0:
        counts = counts & (of_rows != ignored)
    return counts


def _padding_alone(seen: Seen, ids: Ids) -> bool | None:
    """Whether keys are seen in the padding at the ends of rows, and nowhere else; None if no row has any."""
    if seen.is_causal or seen.sees_all:
        return False
    if seen.keys is None:
        return None
    padding = padding_at_the_end(ids)
    if padding is None:
        return None
    rows = np.flatnonzero(padding.any(1) & ~padding.all(1))
    rows = rows[rows < len(seen.keys)]
    if len(rows) < 2:
        return None
    is_seen = seen.keys[rows].any(1)
    return bool((is_seen & padding[rows]).any(1).all() and not (is_seen & ~padding[rows]).any())


def padding_at_the_end(ids: Ids) -> NDArray[np.bool_] | None:
    """Where rows end with the same id, two places or more, as padding does; None if none does."""
    last = ids[:, -1]
    ends = last[ids[:, -2] == last]
    if not len(ends):
        return None
    values, counts = np.unique(ends, return_counts=True)
    is_last = ids == values[counts.argmax()]
    padding: NDArray[np.bool_] = np.logical_and.accumulate(is_last[:, ::-1], axis=1)[:, ::-1]
    return padding
