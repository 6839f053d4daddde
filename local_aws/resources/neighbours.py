"""Buses and topics that the template names and does not create: the account has them, or another one does.

Their own policies are not known here: a bus or topic of others lets this stack in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from local_aws.template import ACCOUNT, REGION, Template

_ARN = re.compile(r"arn:aws:(events|sns):([a-z0-9-]+):(\d{12}):(?:event-bus/)?([\w./-]+)")


def create_neighbours(template: Template) -> None:
    """Create every bus and topic that a resource names by a plain text."""
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        for text in _texts(properties):
            if match := _ARN.fullmatch(text):
                _create(*match.groups())
        if resource["Type"] == "AWS::Events::Rule" and isinstance(properties.get("EventBusName"), str):
            _create("events", REGION, ACCOUNT, properties["EventBusName"])


def bus_at(arn: str) -> Any:
    """Return moto's bus, of any account and region; None if there is none."""
    from moto.events.models import events_backends

    match = _ARN.fullmatch(arn)
    return match and events_backends[match[3]][match[2]].event_buses.get(match[4])


def _create(service: str, region: str, account: str, name: str) -> None:
    if service == "sns":
        from moto.sns.models import sns_backends

        sns_backends[account][region].create_topic(name)  # again is no error
        return
    from moto.events.models import events_backends

    backend = events_backends[account][region]
    if name not in backend.event_buses:
        backend.create_event_bus(name)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for part in value.values():
                yield from _texts(part)
        case list():
            for part in value:
                yield from _texts(part)
