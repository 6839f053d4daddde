"""The outbox as entries of PutEvents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from functions.decisions.event_sizes import as_json
from functions.decisions.outbox import when

SOURCE = "smdebug"
MAX_ENTRIES = 10
MAX_BATCH = 200_000  # bytes of one call


def put_events_entries(outbox: Mapping[str, Mapping[str, Any]], *, now: float) -> Iterator[dict[str, str]]:
    """Yield every entry of the outbox as PutEvents takes it; the caller names the bus.

    Each detail is given `now` as the time of its publication.
    """
    for kept in outbox.values():
        detail = kept["detail"]
        detail = json.loads(detail) if isinstance(detail, str) else dict(detail)
        if "times" in detail:
            detail["times"] = {**detail["times"], "published": when(now)}
        yield {"Source": SOURCE, "DetailType": str(kept["detail_type"]), "Detail": as_json(detail)}
