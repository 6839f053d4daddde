"""Which ranks were killed, by the closing notes of those that failed with them.

A rank that raises, or is terminated, closes its run and says so. One that is killed has no time to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from smdebug_default_rules.ranks.standing import names_of_ranks

PATIENCE = 30.0
"""Seconds that ranks need at most to close their run, one after the other."""


class ClosingNote(Protocol):
    """What a rank has said when it closed its run."""

    @property
    def last_step(self) -> int | None: ...
    @property
    def failed_at(self) -> float | None: ...


class Gone(NamedTuple):
    """The ranks that have ended without a word, in a training whose other ranks failed."""

    workers: Sequence[str]
    failed: int
    """How many of the others have failed."""
    last_step: int
    """The last step that one of these has saved."""


def ranks_gone(notes_of: Callable[[Iterable[str]], Mapping[str, ClosingNote]], expected: int) -> Gone | None:
    """Return the ranks without a closing note; None if no other has failed, or not long enough ago."""
    ranks = names_of_ranks(expected)
    if not _failed(notes_of({ranks[0], ranks[-1]})):
        return None  # without a file read of each rank
    notes = notes_of(ranks)
    failed = _failed(notes)
    without = [rank for rank in ranks if rank not in notes]
    if not failed or not without or 2 * len(without) > expected:
        return None
    if time.time() - max(failed.values()) < PATIENCE:
        return None
    steps = [note.last_step for worker, note in notes.items() if worker in failed]
    return Gone(without, len(failed), max((step for step in steps if step is not None), default=0))


def _failed(notes: Mapping[str, ClosingNote]) -> dict[str, float]:
    """Return when each worker has failed that has."""
    return {worker: note.failed_at for worker, note in notes.items() if note.failed_at is not None}
