"""Whether the targets of a batch stand among its inputs as they are, so that copying them is enough."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

LEAST_ROWS = 8
"""Fewer rows may be equal by chance."""
_LEAST_TOKENS = 4
_MOST_COLUMNS = 1024
INPUT, TOKEN_BEFORE = "input", "token before"


def same_tokens(wanted: NDArray[Any], tokens: NDArray[Any], ignored: int | None) -> str | None:
    """Return where token ids of an input are the targets: at the same place or the one before; else None."""
    if tokens.dtype.kind not in "iu" or tokens.shape[1] < _LEAST_TOKENS:
        return None
    for name, there, here in (
        (INPUT, tokens, wanted),
        (TOKEN_BEFORE, tokens[:, :-1], wanted[:, 1:]),
    ):
        if not _counted(here[0], there[0], ignored)[0]:
            continue  # as mostly
        is_equal, kept = _counted(here, there, ignored)
        if is_equal and kept.size >= LEAST_ROWS and (kept != kept[0]).any():
            return name
    return None


def _counted(here: NDArray[Any], there: NDArray[Any], ignored: int | None) -> tuple[bool, NDArray[Any]]:
    """Whether all targets that count are equal to what is there, and these targets."""
    counts = here >= 0
    if ignored is not None and ignored >= 0:
        counts &= here != ignored
    kept = here[counts]
    return bool((kept == there[counts]).all()), kept


def same_column(targets: NDArray[Any], given: NDArray[Any]) -> int | None:
    """Return the column of an input that is the target of each row; None if there is none."""
    rows = len(given)
    columns = given.size // rows if rows else 0
    if targets.size != rows or rows < LEAST_ROWS or not 2 <= columns <= _MOST_COLUMNS:
        return None
    if given.dtype.kind == "i":  # ids, such as those of tokens: to recall one of them may be the task
        return None
    wanted, given = targets.reshape(-1), given.reshape(rows, columns)
    candidates = (given[0] == wanted[0]).nonzero()[0]
    if candidates.size:
        candidates = candidates[given[-1, candidates] == wanted[-1]]
    if not candidates.size or (wanted == wanted[0]).all():
        return None
    equal = (given[:, candidates] == wanted[:, None]).all(0)
    return int(candidates[equal.argmax()]) if equal.any() else None
