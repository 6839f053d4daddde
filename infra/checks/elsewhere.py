"""Resources that are not the stack's own: a bus, a topic, the bus of a central account."""

from __future__ import annotations

import re
from typing import Protocol

_BUS = r"[\w./-]{1,256}"
_PLACE = r"[\w-]+:\d{12}"


class Elsewhere(Protocol):
    """The settings that name them."""

    @property
    def event_bus(self) -> str | None: ...
    @property
    def alert_topic(self) -> str | None: ...
    @property
    def central_bus(self) -> str | None: ...


def problem_with(settings: Elsewhere) -> str:
    """Return what is wrong with these settings; empty if nothing is."""
    bus, topic, central = settings.event_bus, settings.alert_topic, settings.central_bus
    if bus is not None and not re.fullmatch(_BUS, bus, re.ASCII):
        return (
            f"event_bus={bus!r} is not the name of a bus: write it without its ARN. It has to be of the same "
            "account and region, since rules and their bus are."
        )
    if topic is not None and not re.fullmatch(rf"arn:aws[\w-]*:sns:{_PLACE}:[\w-]{{1,256}}", topic, re.ASCII):
        return (
            f"alert_topic={topic!r} is not the ARN of a standard topic: write "
            "arn:aws:sns:<region>:<account>:<name>."
        )
    if central is not None and not re.fullmatch(
        rf"arn:aws[\w-]*:events:{_PLACE}:event-bus/{_BUS}", central, re.ASCII
    ):
        return (
            f"central_bus={central!r} is not the ARN of a bus: write "
            "arn:aws:events:<region>:<account>:event-bus/<name>."
        )
    return ""
