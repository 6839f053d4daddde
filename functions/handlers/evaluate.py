"""A step is complete -> its rules evaluate the due steps -> their findings, for the workflow to publish."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.environment import EvaluateEnvironment
from functions.evaluation.built_in import evaluate


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return evaluate(wiring.world(EvaluateEnvironment), event["run"], event["group"], event["step"])
