"""The outbox as calls of PutEvents.

for batch in put_events_batches(outbox, now=now):  # at most 10 entries and 200 KB each
    events.put_events(Entries=batch)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from functions.decisions.event_sizes import as_json
from functions.decisions.outbox import when

SOURCE = "smdebug"
MAX_ENTRIES = 10
MAX_BATCH = 200_000  # bytes of one call


def put_events_batches(outbox: Mapping[str, Mapping[str, Any]], *, now: float) -> list[list[dict[str, str]]]:
    """Yield the outbox as calls of PutEvents, each within its limits; the caller names the bus.

    Each detail is given `now` as the time of its publication.
    """
    batches: list[list[dict[str, str]]] = []
    room = 0
    for entry in put_events_entries(outbox, now=now):
        size = sum(len(text.encode()) for text in entry.values())
        if not batches or len(batches[-1]) == MAX_ENTRIES or size > room:
            batches.append([])
            room = MAX_BATCH
        batches[-1].append(entry)
        room -= size
    return batches


def put_events_entries(outbox: Mapping[str, Mapping[str, Any]], *, now: float) -> Iterator[dict[str, str]]:
    """Return every entry of the outbox as PutEvents takes it."""
    for kept in outbox.values():
        detail = kept["detail"]
        detail = json.loads(detail) if isinstance(detail, str) else dict(detail)
        if "times" in detail:
            detail["times"] = {**detail["times"], "published": when(now)}
        yield {"Source": SOURCE, "DetailType": str(kept["detail_type"]), "Detail": as_json(detail)}
