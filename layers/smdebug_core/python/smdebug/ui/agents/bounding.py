"""Answers of a bounded size: what does not fit is left out, and named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from smdebug.ui.agents.marking import CLOSE, OPEN

MOST_TOKENS = 1900
"""Of any answer, as `tokens` counts them."""
_TIGHTER = ((3, 160), (2, 80), (1, 60), (1, 30))
"""Of an item that is too large by itself: how many items its lists keep, and characters of a run's text."""
_SHORTER = (80, 40, 20)
"""Characters of every text of a run, if the answer is too large all the same."""
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
    essential: str = "",
) -> dict[str, Any]:
    """Return the answer with its lists cut until it fits, and `cut`, which names what was left out.

    `cuttable` names the lists that may be cut, the least important first. Each keeps its first item as long
    as another list can be cut. `totals` has the lengths of lists that were cut before. What the list
    `essential` has is shortened before its last item is left out.
    """
    found = {**answer, "cut": []}
    lengths = {name: len(found[name]) for name in cuttable if found.get(name)} | dict(totals or {})
    found["cut"] = _left_out(found, lengths)
    _cut(found, cuttable, lengths, most, least=1)
    others = [name for name in cuttable if name != essential]
    for items, characters in _TIGHTER if essential else ():
        if tokens(text_of(found)) <= most:
            break
        _cut(found, others, lengths, most, least=0)
        found[essential] = _shortened(found[essential], items, characters)
        found["cut"] = [*_left_out(found, lengths), f"{essential}: shortened"]
    _cut(found, cuttable, lengths, most, least=0)
    for characters in _SHORTER:
        if tokens(text_of(found)) <= most:
            break
        found = {name: _shortened(part, None, characters) for name, part in found.items()}
    return found


def _cut(
    answer: dict[str, Any], names: Sequence[str], totals: Mapping[str, int], most: int, *, least: int
) -> None:
    for name in names:
        while len(answer.get(name) or ()) > least and tokens(text_of(answer)) > most:
            answer[name] = answer[name][: max(least, len(answer[name]) * 3 // 4)]
            answer["cut"] = _left_out(answer, totals)


def _shortened(value: Any, items: int | None, characters: int) -> Any:
    """Return a value of an answer with shorter lists, and shorter texts between marks."""
    if isinstance(value, dict):
        return {name: _shortened(part, items, characters) for name, part in value.items()}
    if isinstance(value, list):
        return [_shortened(part, items, characters) for part in value[:items]]
    if isinstance(value, str) and value.startswith(OPEN) and len(value) > characters:
        return f"{value[: characters - 2]}…{CLOSE}"
    return value


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
