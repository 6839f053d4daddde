"""The answers of the sandbox about a chunk of a backtest -> its verdicts, in the bucket."""

from __future__ import annotations

from typing import Any

from functions import wiring
from functions.backtests.sandboxed import keep_verdicts


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return keep_verdicts(wiring.backtest_ports(), event)
