"""What starts the functions, besides the queue of arrivals and the workflow."""

from __future__ import annotations

from constructs import Construct

from infra.event_rule import EventRule
from infra.findings_bus import FOUND, RUN
from infra.foundation import Foundation
from infra.functions import Functions
from infra.settings import Settings


def add_triggers(
    scope: Construct, functions: Functions, foundation: Foundation, settings: Settings
) -> None:
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
    foundation.alerts.connect(foundation.bus, functions.notify, settings)
