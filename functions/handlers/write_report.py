"""A run has finished and its summary is published -> its report, written beside the run."""

from __future__ import annotations

import time
from typing import Any

from functions import wiring
from functions.decisions.outbox import readable
from functions.environment import IndexAccess
from functions.followup.run_report import write_report
from functions.telemetry import log

_RESERVE = 45  # seconds for the step that is being read, and for writing


def handler(event: dict[str, Any], context: Any) -> None:
    run = readable(event["detail"])["run"]
    until = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - _RESERVE
    key = write_report(
        wiring.items(),
        wiring.world(IndexAccess).open_run(run),
        run,
        has_time=lambda: time.monotonic() < until,
        memory=int(context.memory_limit_in_mb) << 20,
        bundles=wiring.bundles(),
    )
    log("The report is written." if key else "There is nothing to report.", run=run, key=key)
