"""How the labels of a language model stand to the token ids and the mask that it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_TOKENS = 4096
"""Of more tokens, the first rows are compared."""
_LEAST_LENGTH, _LEAST_COUNTED = 4, 8
_MOST_TOKENS = 0.5
"""Labels that are the token at their place more often than this are tokens themselves, no tags."""
_OFFSETS = (0, 1, 2)
Ids = NDArray[Any]
Mask = NDArray[np.bool_]


class _Matched(NamedTuple):
    """Labels in rows, beside one input of token ids."""

    ids: Ids
    labels: Ids
    counts: Mask
    """Which labels count."""
    equal: list[float]
    """The shares of labels that are the token at the same place, the next one and the one after."""


def token_facts(
    labels: Ids, inputs: Sequence[Ids], ignored: int | None, padding_id: int | None = None
) -> dict[str, Any] | None:
    """Compare labels with the token ids among the inputs; None if there are none of their length.

    `equal` has the shares of labels that are the token at the same place, the next one and the one after.
    Where a mask of padding is among the inputs, or rows end with the id that the model's embedding has for
    it (`padding_id`), `padding` is the share of the labels that count although they and their inputs are
    padding. Where padding has the id that texts end with, `ends` counts the ends of texts whose last other
    token is learned, and `ends_learned` those that are learned, too.

    Of labels that are no tokens, such as tags, `padding_class` is the one that all padding has and nothing
    else, and `padding` the share of the labels that count and have it.
    """
    matched = [found for given in inputs if (found := _matched(labels, given, ignored)) is not None]
    if not matched:
        return None
    best = max(matched, key=lambda found: (found.equal[1], found.equal[2], found.equal[0]))
    facts: dict[str, Any] = {"equal": best.equal, "counted": int(best.counts.sum())}
    describe = _padding_facts if best.equal[1] == 1 else _class_of_padding
    for given in inputs:
        padding = _padding(best.ids, given)
        if padding is not None:
            return {**facts, **describe(best, padding)}
    if padding_id is not None and (padding := _ending(best.ids, padding_id)) is not None:
        described = describe(best, padding)
        return {**facts, **described, **({"padding_id": padding_id} if described else {})}
    return facts


def _matched(labels: Ids, ids: Ids, ignored: int | None) -> _Matched | None:
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or ids.shape[1] < _LEAST_LENGTH or not len(ids):
        return None
    rows, length = ids.shape
    columns, rest = divmod(labels.size, rows)
    if rest or not length - _OFFSETS[-1] <= columns <= length:
        return None
    most = max(1, MAX_TOKENS // length)
    ids, labels = ids[:most], labels.reshape(rows, columns)[:most]
    if ids.min() < 0 or ids.max() <= 1:  # labels themselves, or flags
        return None
    counts = labels >= 0
    if ignored is not None and ignored >= 0:
        counts &= labels != ignored
    if counts.sum() < _LEAST_COUNTED:
        return None
    return _Matched(ids, labels, counts, [_equal(ids, labels, counts, offset) for offset in _OFFSETS])


def _equal(ids: Ids, labels: Ids, counts: Mask, offset: int) -> float:
    columns = min(labels.shape[1], ids.shape[1] - offset)
    counted = counts[:, :columns]
    is_equal = (labels[:, :columns] == ids[:, offset : offset + columns]) & counted
    return round(float(is_equal.sum() / max(counted.sum(), 1)), 6)


def _padding(ids: Ids, given: Ids) -> Mask | None:
    """The places that a mask leaves out at the ends of rows, if all of them have the same id."""
    if given.ndim != 2 or given.shape[1] != ids.shape[1] or len(given) < len(ids):
        return None
    given = given[: len(ids)]
    is_set = given == 1
    if not ((given == 0) | is_set).all():
        return None
    padding: Mask
    for padding in (~is_set, is_set):
        found = ids[padding]
        changes = (padding[:, 1:] != padding[:, :-1]).sum(1)
        if 0 < found.size < ids.size and (found == found[0]).all() and (changes <= 1).all():
            return padding
    return None


def _ending(ids: Ids, padding_id: int) -> Mask | None:
    """The places at the ends of rows that have this id; None if there are none, or nothing else."""
    padding: Mask = np.logical_and.accumulate((ids == padding_id)[:, ::-1], axis=1)[:, ::-1]
    return padding if 0 < np.count_nonzero(padding) < ids.size else None


def _padding_facts(matched: _Matched, padding: Mask) -> dict[str, Any]:
    ids, counts = matched.ids, matched.counts
    columns = min(counts.shape[1], ids.shape[1] - 1)
    counts, before, after = counts[:, :columns], padding[:, :columns], padding[:, 1 : 1 + columns]
    counted = max(int(counts.sum()), 1)
    facts: dict[str, Any] = {"padding": round(float((counts & before & after).sum() / counted), 6)}
    token = ids[padding][0]
    lengths = (~padding).sum(1)
    rows = np.flatnonzero(~padding[:, 0] & padding[:, -1] & (lengths >= 3) & (lengths <= columns))
    last = lengths[rows] - 1
    if not rows.size or (ids[rows, last] != token).any():
        return facts
    learns = counts[rows, last - 2]  # the label of the last token before the end
    facts["ends"] = int(learns.sum())
    facts["ends_learned"] = int((matched.labels[matched.counts] == token).sum())
    return facts


def _class_of_padding(matched: _Matched, padding: Mask) -> dict[str, Any]:
    """The class that padding has as its label, if all of it counts and nothing else has that class."""
    labels, counts = matched.labels, matched.counts
    if labels.shape != padding.shape or not counts[padding].all():
        return {}
    given = labels[padding]
    are_tokens = (labels == matched.ids)[~padding & counts].mean() > _MOST_TOKENS
    if (given != given[0]).any() or (labels[~padding & counts] == given[0]).any() or are_tokens:
        return {}
    return {"padding": round(float(padding.sum() / counts.sum()), 6), "padding_class": int(given[0])}
