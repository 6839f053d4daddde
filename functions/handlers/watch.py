"""The wake-up of a run -> has it fallen silent? Then say so, and sleep until it is time to look again."""

from __future__ import annotations

from functions import wiring
from functions.lifecycle.reminders import watch


def handler(event: dict[str, str], context: object) -> None:
    watch(wiring.world(), event["run"])
