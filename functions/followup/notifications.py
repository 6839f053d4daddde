"""Notifying people of an event once, although the event may arrive more than once.

Overlapping executions publish the same outbox, so that one event arrives as several, a moment apart; and
the bus itself may deliver an event twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.decisions import alerts
from functions.ports import Clock, ItemStore, Topic
from functions.versioned_items import versioned

SENT = "SENT"
KEPT_FOR = 14 * 86_400  # seconds: as long as a queue keeps what could not be delivered


@dataclass(frozen=True)
class NotificationPorts:
    """The ports for sending a message once: the topic, and a record of what was sent."""

    topic: Topic
    store: ItemStore
    clock: Clock


def notify_once(ports: NotificationPorts, delivery: str, detail_type: str, detail: Mapping[str, Any]) -> bool:
    """Send the message unless another delivery or event of the issue does; return whether it was sent.

    The first delivery owns the message for good. If it dies before sending, it is repeated with the same
    id and still owns it: a message may arrive twice, but is never lost. An event without an id is
    sent each time.
    """
    about = alerts.subject_of_message(detail_type, detail)
    if about and delivery:
        item = versioned(ports.store).update(
            f"{SENT}#{about}",
            SENT,
            set={"expires": int(ports.clock.now() + KEPT_FOR)},
            set_once={"by": delivery},
        )
        if item["by"] != delivery:
            return False
    ports.topic.publish(
        subject=alerts.subject(detail_type, detail),
        email=alerts.email(detail_type, detail),
        sms=alerts.sms(detail_type, detail),
    )
    return True
