"""An event on the bus, or an alarm -> a message that a person can read, once, if it is worth one."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.decisions import alerts
from functions.followup.notifications import tell_once


def handler(event: dict[str, Any], context: object) -> None:
    kind, detail = event["detail-type"], event["detail"]
    if alerts.is_worth_a_message(kind, detail):
        # An invocation that failed comes again with the same id; an event may come as several.
        delivery = getattr(context, "aws_request_id", None) or event.get("id", "")
        tell_once(wiring.writer(), delivery, kind, detail)
