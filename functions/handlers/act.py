"""A finding that asks for something -> stop the training, tell somebody, and keep what became of it."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.followup.actions import act_on
from functions.telemetry import log


def handler(event: dict[str, Any], context: object) -> None:
    detail = event["detail"]
    for outcome in act_on(wiring.hands(), detail, getattr(context, "aws_request_id", "")):
        log(
            outcome["message"],
            run=detail["run"],
            rule=detail["rule"],
            step=detail["step"],
            action=outcome,
        )
