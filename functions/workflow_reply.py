"""What a function tells the workflow: which events to put, and how to say afterwards that it was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.decisions.events import MAX_BATCH, MAX_ENTRIES, put_events_entries
from functions.workflow_start import RUN_ITSELF
from functions.world import World


def answer(
    world: World,
    run: str,
    group: str | None,
    outbox: Mapping[str, Mapping[str, Any]],
    *,
    more: bool = False,
) -> dict[str, Any]:
    """The first call of PutEvents that the outbox gives; `more` says that there is more to do or to put."""
    chosen: dict[str, Mapping[str, Any]] = {}
    room = MAX_BATCH
    for name, entry in outbox.items():
        room -= len(entry["detail"].encode()) + 200
        if chosen and (room < 0 or len(chosen) == MAX_ENTRIES):
            break
        chosen[name] = entry
    return {
        "run": run,
        "group": group or RUN_ITSELF,
        "outbox": list(put_events_entries(chosen, now=world.clock.now())),
        "mark": {"run": run, "group": group, "ids": list(chosen)},
        "more": more or len(chosen) < len(outbox),
    }
