"""Every night -> the runs that saved a step on the day before, judged by today's default rules."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.backtests.nightly import plan_nightly


def handler(event: object, context: object) -> dict[str, Any]:
    return plan_nightly(wiring.nightly_ports())
