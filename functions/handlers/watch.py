"""A schedule of a run fires -> look for its silence, check it, or finish it; and schedule what follows."""

from __future__ import annotations

from functions import wiring
from functions.environment import WatchEnvironment
from functions.lifecycle.upkeep import tend


def handler(event: dict[str, str], context: object) -> None:
    tend(wiring.world(WatchEnvironment), event)
