"""An event on the bus, or an alarm -> a message that a person can read, if it is worth one."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.decisions import alerts


def handler(event: dict[str, Any], context: object) -> None:
    kind, detail = event["detail-type"], event["detail"]
    if alerts.is_worth_a_message(kind, detail):
        wiring.topic().publish(
            subject=alerts.subject(kind, detail),
            email=alerts.email(kind, detail),
            sms=alerts.sms(kind, detail),
        )
