"""What starts the functions, besides the queue of arrivals and the workflow."""

from __future__ import annotations

from constructs import Construct

from infra.events.event_rule import EventRule
from infra.events.findings_bus import ALL_EVENTS, FOUND, RUN
from infra.foundation import Foundation
from infra.functions import Functions


def add_triggers(scope: Construct, functions: Functions, foundation: Foundation) -> None:
    """Connect time and the bus of findings to the functions that they start."""
    EventRule(
        scope,
        "EveryFiveMinutes",
        does="Looks for notifications that S3 lost, in all watched runs",
        undelivered=foundation.undelivered,
        target=functions.sweep,
        every="rate(5 minutes)",
    )
    foundation.bus.when(
        "Act",
        does="Findings that ask for an action",
        detail_types=[FOUND],
        detail={"has_actions": [True]},
        target=functions.act,
    )
    foundation.bus.when(
        "WriteReport",
        does="Runs that are finished",
        detail_types=[RUN],
        detail={"state": ["Finished"]},
        target=functions.write_report,
    )
    foundation.bus.when(
        "Notify",
        does="Sends alerts to people",
        detail_types=list(ALL_EVENTS),
        target=functions.notify,
    )
    for webhook, function in functions.webhooks:
        foundation.bus.when(
            webhook.id,
            does="Posts events to a webhook",
            detail_types=list(webhook.detail_types),
            target=function,
        )
