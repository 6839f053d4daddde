"""Answers of a bounded size: what does not fit is left out, and named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

MOST_TOKENS = 1900
"""Of any answer, as `tokens` counts them."""
_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]")


def text_of(answer: Mapping[str, Any]) -> str:
    """Return the answer as compact JSON; it has no number that JSON lacks."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def tokens(text: str) -> int:
    """Return how many tokens a text has at most, whatever the tokenizer.

    Words count a token for every three letters, and every digit, sign and byte of other scripts for itself.
    """
    return sum(_tokens_of(piece) for piece in _PIECES.findall(text))


def fitted(
    answer: Mapping[str, Any],
    cuttable: Sequence[str],
    most: int = MOST_TOKENS,
    *,
    totals: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the answer with its lists cut until it fits, and `cut`, which names what was left out.

    `cuttable` names the lists that may be cut, the least important first. Each keeps its first item as long
    as another list can be cut. `totals` has the lengths of lists that were cut before.
    """
    found = {**answer, "cut": []}
    lengths = {name: len(found[name]) for name in cuttable if found.get(name)} | dict(totals or {})
    found["cut"] = _left_out(found, lengths)
    for least in (1, 0):
        for name in cuttable:
            while len(found.get(name) or ()) > least and tokens(text_of(found)) > most:
                found[name] = found[name][: max(least, len(found[name]) * 3 // 4)]
                found["cut"] = _left_out(found, lengths)
    return found


def _left_out(answer: Mapping[str, Any], totals: Mapping[str, int]) -> list[str]:
    return [
        f"{name}: {len(answer[name])} of {total}"
        for name, total in totals.items()
        if len(answer[name]) < total
    ]


def _tokens_of(piece: str) -> int:
    if piece[0].isascii():
        return -(-len(piece) // 3) if piece[0].isalpha() else len(piece)
    return len(piece.encode("utf-8", "surrogatepass"))
