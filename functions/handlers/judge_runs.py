"""A chunk of a backtest -> the verdicts of built-in rules on its runs, in the bucket."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.backtests.judging import judge_chunk


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return judge_chunk(wiring.backtest_ports(), event)
