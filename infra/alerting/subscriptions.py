"""The subscriptions of the alerts' recipients to a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.settings import Settings


def subscribe(
    scope: Construct,
    topic: sns.ITopic,
    settings: Settings,
    *,
    filter_policy: Callable[[str], Any] | None = None,
) -> None:
    """Subscribe each address and number of the settings, with the filter that it gets, if any."""
    for protocol, endpoints in (
        ("email", settings.alert_emails),
        ("sms", settings.alert_phone_numbers),
    ):
        for number, endpoint in enumerate(endpoints, 1):
            sns.CfnSubscription(
                scope,
                f"{protocol.capitalize()}{number}",
                topic_arn=topic.topic_arn,
                protocol=protocol,
                endpoint=endpoint,
                filter_policy=filter_policy(endpoint) if filter_policy else None,
            )
