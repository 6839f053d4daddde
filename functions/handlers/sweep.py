"""Every few minutes -> the watched runs: find the files that no notification reported."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.arrivals.missed_files import sweep
from functions.environment import IngestEnvironment


def handler(event: object, context: object) -> dict[str, Any]:
    return {"missed": sweep(wiring.world(IngestEnvironment))}
