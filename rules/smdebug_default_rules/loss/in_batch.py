"""Contrastive losses: each row of a batch is to be told from all others, so that guessing costs ln(rows)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.scales import Hint

LEAST_ROWS = 8
FLAT = 0.002
"""A loss that falls by less than this share of guessing, in a quarter of the training, has come to an end."""
LEAST_BLOCKS = 16
_ADVICE = (
    "Divide the similarities by a temperature of about 0.07 before the cross entropy: cosines that are not "
    "scaled, or multiplied by it, are too close to each other to tell rows apart. Then check that row i of "
    "both views is the same example."
)


def is_in_batch(terms: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the loss is one cross entropy, or two alike, whose classes are the rows of the batch."""
    return len(terms) in (1, 2) and all(_is_of_rows(term, terms[0]) for term in terms)


def _is_of_rows(term: Mapping[str, Any], like: Mapping[str, Any]) -> bool:
    rows, classes = term.get("rows"), term.get("classes")
    return bool(
        term.get("criterion") == "cross entropy"
        and rows == classes == term.get("classes_seen") == like.get("rows")
        and (rows or 0) >= LEAST_ROWS
    )


def is_flat(blocks: Sequence[float], guessing: float) -> bool:
    """Whether the means of the losses have come to an end, however even their last fall is."""
    if len(blocks) < LEAST_BLOCKS:
        return False
    quarter = len(blocks) // 4
    before, now = blocks[-2 * quarter : -quarter], blocks[-quarter:]
    return sum(before) / quarter - sum(now) / quarter < FLAT * guessing


def hint(seen: ObservedStep) -> Hint | None:
    """Return what to say beside a contrastive loss that stays where guessing is."""
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    if not is_in_batch(terms):
        return None
    rows = terms[0]["rows"]
    return Hint(f"Each of {rows} rows is to be told from the {rows - 1} others of its batch", _ADVICE)
