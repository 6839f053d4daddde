"""Scores of an attention that are not divided by the root of their width, in a model that nobody has trained.

Some models divide nothing on purpose: their weights are drawn smaller, so that the scores are small, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_KEPT, LEAST_DIVIDED = 0.4, 0.75
"""The share of the tokens that a token looks at, as the scores are, and if they were divided."""
STATISTIC = "share of the tokens that a token looks at"
TITLE = "The scores of attention are not divided"
ADVICE = (
    "Divide the scores before the softmax by the root of the width of a head: query @ key.transpose(-2, -1) "
    "/ math.sqrt(query.shape[-1]), or leave the argument scale of scaled_dot_product_attention out."
)


def share_in(attention: Mapping[str, Any], *, is_known: bool) -> float | None:
    """Return the share of the tokens that a token looks at if it is too small; None if not, or not known.

    It has to be so of a model that is not trained yet, at the first step of those in a row (`is_known`).
    """
    scores: Mapping[str, Any] | None = attention.get("undivided")
    if not scores or not (scores["is_even"] or is_known):
        return None
    kept = float(scores["kept"])
    return kept if kept <= MOST_KEPT and scores["divided"] >= LEAST_DIVIDED else None


def words(attention: Mapping[str, Any], steps: str) -> tuple[str, str]:
    """Say what is wrong, and the numbers that convince."""
    scores = attention["undivided"]
    width, factor, tokens = scores["width"], float(scores["factor"]), scores["tokens"]
    what = f"multiplied with {factor:.3g}" if factor > 1 else "not divided"
    message = (
        f"The scores of attention are {what} before their softmax, while queries and keys have {width} "
        "values: the weights of the untrained model lie on few tokens already, and pass little gradient"
    )
    why = (
        f"A token looks at {scores['kept']:.0%} of the {tokens} tokens in effect, at {steps}; divided by the "
        f"root of {width}, it would look at {scores['divided']:.0%}"
    )
    return message, why
