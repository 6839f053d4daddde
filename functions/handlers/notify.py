"""An event on the bus, or an alarm -> a message for people, once, if it is worth one."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.decisions import alerts
from functions.decisions.outbox import readable
from functions.followup.notifications import notify_once


def handler(event: dict[str, Any], context: object) -> None:
    detail_type, detail = event["detail-type"], readable(event["detail"])
    if alerts.is_worth_a_message(detail_type, detail):
        # A failed invocation is repeated with the same id; an event may arrive as several invocations.
        delivery = getattr(context, "aws_request_id", None) or event.get("id", "")
        notify_once(wiring.notification_ports(), delivery, detail_type, detail)
