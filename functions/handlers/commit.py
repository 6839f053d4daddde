"""What a custom rule answered -> checked, judged and committed -> what there is to publish."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.custom_rules.judging import commit


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return commit(wiring.world(), event["run"], event["group"], event["claim"], event["ran"])
