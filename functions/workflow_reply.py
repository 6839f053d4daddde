"""The reply of a function to the workflow: the events to publish, and how to mark them published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.decisions.publishing import MAX_BATCH, MAX_ENTRIES, put_events_entries
from functions.workflow_start import RUN_ITSELF
from functions.world import World


def reply(
    world: World,
    run: str,
    group: str | None,
    outbox: Mapping[str, Mapping[str, Any]],
    *,
    more: bool = False,
) -> dict[str, Any]:
    """Return the outbox's first call of PutEvents; `more` if there is more to evaluate or to publish."""
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
