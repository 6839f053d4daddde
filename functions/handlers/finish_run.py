"""All rules of an ended run have finished -> its summary, for the workflow to publish."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.environment import EvaluateEnvironment
from functions.lifecycle.summary import finish_run


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return finish_run(wiring.world(EvaluateEnvironment), event["run"])
