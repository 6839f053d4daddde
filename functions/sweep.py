"""Every few minutes -> the runs that are being watched: find the files that no notification told of."""

from __future__ import annotations

from typing import Any

from functions import upkeep, wiring


def handler(event: object, context: object) -> dict[str, Any]:
    return {"missed": upkeep.sweep(wiring.world())}
