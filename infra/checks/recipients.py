"""Who gets alerts and events: people, web hooks, and services of the account."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

IN_SSM = "ssm:"
_SECRET = rf"[\w/+=.@-]{{1,512}}|{IN_SSM}/?[\w.-]+(/[\w.-]+)*"
_BATCH_QUEUE = r"[A-Za-z0-9][\w-]{0,127}"


class Recipients(Protocol):
    """The settings that decide it."""

    @property
    def alert_emails(self) -> tuple[str, ...]: ...
    @property
    def alert_phone_numbers(self) -> tuple[str, ...]: ...
    @property
    def slack_secret(self) -> str | None: ...
    @property
    def webhook_secret(self) -> str | None: ...
    @property
    def alertmanager_secret(self) -> str | None: ...
    @property
    def otlp_secret(self) -> str | None: ...
    @property
    def batch_queues(self) -> tuple[str, ...]: ...
    @property
    def stop_queues(self) -> tuple[str, ...]: ...
    @property
    def export_queues(self) -> tuple[str, ...]: ...


def problem_with(settings: Recipients) -> str:
    """Return what is wrong with these settings; empty if nothing is."""
    for address in settings.alert_emails:
        if not re.fullmatch(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+", address):
            return f"alert_emails: {address!r} is not an email address."
    for number in settings.alert_phone_numbers:
        if not re.fullmatch(r"\+[1-9]\d{6,14}", number):
            return f"alert_phone_numbers: {number!r} is not an international number: write +15551234567."
    for name, secret in (
        ("slack_secret", settings.slack_secret),
        ("webhook_secret", settings.webhook_secret),
        ("alertmanager_secret", settings.alertmanager_secret),
        ("otlp_secret", settings.otlp_secret),
    ):
        if secret is not None and not re.fullmatch(_SECRET, secret, re.ASCII):
            return (
                f"{name}={secret!r} is neither the name of a secret in Secrets Manager nor `ssm:` and "
                "the name of a parameter in Systems Manager; the URL goes into it."
            )
    for queue in settings.batch_queues:
        if not re.fullmatch(_BATCH_QUEUE, queue, re.ASCII):
            return f"batch_queues: {queue!r} is not the name of a job queue: write it without its ARN."
    return _problem_with_queues("stop_queues", settings.stop_queues, "cluster") or _problem_with_queues(
        "export_queues", settings.export_queues, "tool"
    )


def _problem_with_queues(setting: str, names: Sequence[str], reader: str) -> str:
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9]{0,31}", name):
            return f"{setting}: {name!r} is not a name: use up to 32 lower-case letters and digits."
        if names.count(name) > 1:
            return f"{setting}: {name} is listed twice; each {reader} has a queue of its own."
    return ""
