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
    chosen = world.index.pending(run, group, outbox, most=MAX_ENTRIES, largest=MAX_BATCH)
    mark = {"run": run, "group": group, "ids": chosen.published, "begun": chosen.begun}
    return {
        "run": run,
        "group": group or RUN_ITSELF,
        "outbox": list(put_events_entries(chosen.entries, now=world.clock.now())),
        "mark": mark,
        "more": more or chosen.more,
    }
