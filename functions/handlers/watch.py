"""The wake-up of a run -> has it fallen silent? Report it, and schedule the next check."""

from __future__ import annotations

from functions import wiring
from functions.environment import WatchEnvironment
from functions.lifecycle.silence import watch


def handler(event: dict[str, str], context: object) -> None:
    watch(wiring.world(WatchEnvironment), event["run"])
