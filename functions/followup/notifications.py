"""Telling people of an event once, although the event may come more than once.

Executions that overlap each publish what the outbox still holds, so that the same event comes as several
of the bus, a moment apart; and the bus itself may deliver one of them twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.decisions import alerts
from functions.ports import Clock, ItemStore, Topic

SENT = "SENT"
KEPT_FOR = 14 * 86_400  # seconds: as long as a queue keeps what could not be delivered


@dataclass(frozen=True)
class Writer:
    """What it takes to write to people, and to remember who has."""

    topic: Topic
    store: ItemStore
    clock: Clock


def tell_once(writer: Writer, delivery: str, detail_type: str, detail: Mapping[str, Any]) -> bool:
    """Tell everybody, unless another delivery does. Was it done?

    The first delivery owns the message for good, in one write. Whoever dies before it is sent is called
    again with the same delivery, which still owns it: rather twice than never. What has no id, such as an
    alarm, is told each time.
    """
    if detail.get("id") and delivery:
        item = writer.store.update(
            f"{SENT}#{detail['id']}",
            SENT,
            set={"expires": int(writer.clock.now() + KEPT_FOR)},
            set_once={"by": delivery},
        )
        if item["by"] != delivery:
            return False
    writer.topic.publish(
        subject=alerts.subject(detail_type, detail),
        email=alerts.email(detail_type, detail),
        sms=alerts.sms(detail_type, detail),
    )
    return True
