"""Messages we left ourselves -> was it done? If not, start it again; if a run has ended, finish it."""

from __future__ import annotations

import json
from typing import Any

from functions import wiring
from functions.telemetry import log_problem
from functions.upkeep import check, finish


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    world = wiring.world()
    again = []
    for message in event["Records"]:
        told = json.loads(message["body"])
        attempt = f"{message['messageId']}-{message['attributes']['ApproximateReceiveCount']}"
        try:
            if "finish" in told:
                finish(world, told["finish"], attempt)
            else:
                check(world, told["check"], attempt)
        except Exception as problem:  # noqa: BLE001 - it must not take the other messages along
            log_problem(f"{told} could not be done", problem)
            again.append({"itemIdentifier": message["messageId"]})
    return {"batchItemFailures": again}
