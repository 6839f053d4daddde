"""A job from a claim -> the rule's outcomes at its steps. Untrusted: this function may only log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from functions.custom_rules.running import memory_left, run


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    deployed = os.environ.get("SMDEBUG_RULE_FILE")
    beside = Path(__file__).parents[2]
    return run(
        event,
        memory_mb=memory_left(float(context.memory_limit_in_mb)),
        seconds=context.get_remaining_time_in_millis() / 1000 - 5,
        file=str(beside / deployed) if deployed else None,
    )
