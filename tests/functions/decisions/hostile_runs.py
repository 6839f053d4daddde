"""Events of runs with hostile names, as EventBridge hands them to a target."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from functions.decisions.publishing import put_events_entries
from tests.functions.decisions import sample_events

HOSTILE = [
    "my-bucket/mnist-1",
    'my-bucket/"},{"labels":{}}',
    "my-bucket/a\nb\r\t\\",
    "my-bucket/größe-訓練-🚀",
    "my-bucket/<aws.events.event> <run>",
]


def posted_of(run: str, kind: str) -> dict[str, Any]:
    """Return an event of this run, as a rule on the bus delivers it."""
    with patch.object(sample_events, "RUN", replace(sample_events.RUN, run=run)):
        entry = sample_events.every_kind()[kind]
    (sent,) = put_events_entries({entry.id: entry.as_item()}, now=sample_events.NOON + 2.7)
    return {
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": sent["DetailType"],
        "source": sent["Source"],
        "account": "123456789012",
        "time": "2026-11-21T12:00:03Z",
        "region": "us-east-1",
        "resources": [],
        "detail": json.loads(sent["Detail"]),
    }
