"""Posting an event to a webhook whose URL is in a secret that only this function reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from functions.decisions.posting.posts import Form, body_of, wait_before_next
from functions.ports import Secrets, Web
from smdebug.exceptions import SMDebugError
from smdebug.service.webhook_secrets import endpoint_in

ATTEMPTS = 3  # of one invocation; Lambda invokes twice more, and then the event is a dead letter


class NotDelivered(SMDebugError):
    """The webhook did not accept the event: the message has its status."""


@dataclass(frozen=True)
class WebhookPorts:
    """What posting needs."""

    secrets: Secrets
    web: Web
    wait: Callable[[float], None]
    secret: str  # its name
    form: Form


def post(ports: WebhookPorts, event: Mapping[str, Any]) -> None:
    """Post the event; `NotDelivered` if the webhook refuses it, or after a few attempts."""
    body = body_of(ports.form, event)
    text = ports.secrets.read(ports.secret)
    for attempt in range(ATTEMPTS):
        endpoint = endpoint_in(text, ports.secret)
        answer = ports.web.post(endpoint.url, body, headers=endpoint.headers)
        if 200 <= answer.status < 300:
            return
        wait = wait_before_next(answer, attempt)
        if wait is None:
            # The URL may have been replaced since it was read.
            newest = ports.secrets.read(ports.secret, again=True)
            if newest == text:
                break
            text = newest
        elif attempt + 1 < ATTEMPTS:
            ports.wait(wait)
    answered = f"answered with {answer.status}" if answer.status else f"failed: {answer.problem}"
    raise NotDelivered(f"The webhook of the secret {ports.secret} {answered}.")
