"""Every few minutes -> the runs that are being watched: find the files that no notification told of."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.lifecycle.reminders import sweep


def handler(event: object, context: object) -> dict[str, Any]:
    return {"missed": sweep(wiring.world())}
