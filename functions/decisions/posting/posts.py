"""What is posted to a webhook, and what its answer asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from functions.decisions.posting import tool_forms
from smdebug.secrets.data import redacted_data
from smdebug.secrets.texts import redacted

LONGEST_WAIT = 10.0  # seconds between two attempts of one invocation


class Form(StrEnum):
    """The forms of a post."""

    EVENT = "event"  # as published on the bus
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"
    OTLP = "otlp"  # events of OpenTelemetry's log


@dataclass(frozen=True)
class Answer:
    """The answer to a post, or the kind of error that prevented one."""

    status: int = 0
    retry_after: str = ""
    problem: str = ""


def body_of(form: Form, event: Mapping[str, Any]) -> bytes:
    """Return the body of the post."""
    return json.dumps(_payload(form, event)).encode()


def slack_message(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event as Slack and compatible services accept it."""
    title, text, footer = (_plain(detail.get(name)) for name in ("rule", "reason", "run"))
    return {
        "text": _plain(detail.get("text")),
        "attachments": [{"title": title, "text": text, "footer": footer}],
    }


def wait_before_next(answer: Answer, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt; None if it would be refused as well."""
    if answer.status and answer.status != 429 and answer.status < 500:
        return None
    seconds = answer.retry_after
    requested = float(seconds) if seconds.isascii() and seconds.isdigit() else 0.0
    return min(LONGEST_WAIT, max(requested, 2.0**attempt))


def _payload(form: Form, event: Mapping[str, Any]) -> Any:
    if form is Form.SLACK:
        return slack_message(event["detail"])
    safe = redacted_data(event)
    if form is Form.ALERTMANAGER:
        return tool_forms.alerts(safe)
    return tool_forms.log_request(safe) if form is Form.OTLP else safe


def _plain(text: object) -> str:
    """Escape what Slack would take for a link or a mention, such as `<!channel>` in a run's name."""
    plain = "" if text is None else redacted(str(text))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
