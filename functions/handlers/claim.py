"""A step is complete -> the job of a custom rule: its due steps, code and credentials."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.custom_rules.claiming import claim
from functions.environment import ClaimEnvironment


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return claim(wiring.world(ClaimEnvironment), event["run"], event["group"], event["step"])
