"""An event on the bus -> a post to a webhook, whose URL is read from its secret."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.followup.webhooks import post


def handler(event: dict[str, Any], context: object) -> None:
    post(wiring.webhook_ports(), event)
