"""A custom rule's answer -> checked, judged and committed -> what to publish."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.custom_rules.judging import commit_answer
from functions.environment import EvaluateEnvironment


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return commit_answer(
        wiring.world(EvaluateEnvironment),
        event["run"],
        event["group"],
        event["claim"],
        event["ran"],
    )
