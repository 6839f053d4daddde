"""A shard of a step's files -> their content, for the function that evaluates the step."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.evaluation.reading_shards import read_shard


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return read_shard(wiring.opened, event)
