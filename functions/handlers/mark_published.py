"""Events were put on the bus -> they leave the outbox."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.environment import IndexAccess


def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    index = wiring.world(IndexAccess).index
    index.mark_published(event["run"], event["group"], event["ids"], event.get("begun"))
    return {"published": len(event["ids"])}
