"""The closing notes of workers, which name the last step of each, as items of the table hold them."""

from __future__ import annotations

from collections.abc import Iterable

from smdebug.service.step_index.item_reader import Item


def closing_token(worker: str, last_step: int | None) -> str:
    """The token of a worker's closing note: `500=worker_3`; -1 if it has saved nothing."""
    return f"{-1 if last_step is None else last_step}={worker}"


def closing_notes_of(items: Iterable[Item]) -> dict[str, int]:
    """The last step of each worker that has closed."""
    notes: dict[str, int] = {}
    for item in items:
        for token in item.get("f", ()):
            last, _, worker = token.partition("=")
            notes[worker] = max(int(last), notes.get(worker, -1))
    return notes
