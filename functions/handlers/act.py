"""A finding with actions -> stop the training or send messages, and record the outcome."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.decisions.outbox import readable
from functions.followup.actions import carry_out
from functions.telemetry import log


def handler(event: dict[str, Any], context: object) -> None:
    detail = readable(event["detail"])
    invocation = getattr(context, "aws_request_id", "")
    for outcome in carry_out(wiring.action_ports(), detail, invocation):
        log(
            outcome["message"],
            run=detail["run"],
            rule=detail["rule"],
            step=detail["step"],
            action=outcome,
        )
