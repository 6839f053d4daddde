"""Webhooks: functions that post events to a URL which only they can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import aws_cdk as cdk

from infra.events.findings_bus import ALL_EVENTS, FOUND, RESOLVED
from infra.names import WEBHOOK_FORM, WEBHOOK_SECRET
from infra.python_function import PythonFunction
from infra.settings import IN_SSM, Settings


@dataclass(frozen=True)
class Webhook:
    """A webhook of the settings: where its URL is, and which events it gets in which form."""

    id: str
    secret: str
    form: str
    detail_types: tuple[str, ...]

    def let_read_url(self, function: PythonFunction) -> None:
        """Let the function, and no other, read the URL; nothing else of the stack contains it."""
        here = f"{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}"
        if self.secret.startswith(IN_SSM):
            name = self.secret.removeprefix(IN_SSM).lstrip("/")
            arn = f"arn:{cdk.Aws.PARTITION}:ssm:{here}:parameter/{name}"
            function.may("ssm:GetParameter", on=[arn])
        else:
            arn = f"arn:{cdk.Aws.PARTITION}:secretsmanager:{here}:secret:{self.secret}-??????"
            function.may(
                "secretsmanager:GetSecretValue",
                on=[arn],
                because="Secrets Manager appends six characters to the name of a secret.",
            )
        function.knows(WEBHOOK_SECRET, self.secret)
        function.knows(WEBHOOK_FORM, self.form)


def webhooks_of(settings: Settings) -> Iterator[Webhook]:
    """Yield the webhooks of the settings."""
    if settings.slack_secret:
        yield Webhook("Slack", settings.slack_secret, "slack", (FOUND, RESOLVED))
    if settings.webhook_secret:
        yield Webhook("Webhook", settings.webhook_secret, "event", ALL_EVENTS)
    if settings.alertmanager_secret:
        yield Webhook("Alertmanager", settings.alertmanager_secret, "alertmanager", (FOUND, RESOLVED))
    if settings.otlp_secret:
        yield Webhook("Otlp", settings.otlp_secret, "otlp", ALL_EVENTS)
