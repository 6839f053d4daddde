"""A chunk of a backtest with rules of the user's own -> a job for the sandbox for each of its runs."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.backtests.sandboxed import prepare_chunk


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return prepare_chunk(wiring.backtest_ports(), event)
