"""What the functions say: log lines as JSON, and metrics in CloudWatch's embedded format."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping
from typing import Any

NAMESPACE = "smdebug"


def log(message: str, **told: Any) -> None:
    """One line of JSON: what happened, to which run, step and rule."""
    line = {"level": "INFO", "message": message, "timestamp": round(time.time(), 3), **told}
    print(json.dumps(line, default=str), flush=True)


def log_problem(message: str, problem: BaseException, **told: Any) -> None:
    """The same for something that went wrong, with where it did."""
    trace = "".join(traceback.format_exception(problem))[-4000:]
    said = f"{type(problem).__name__}: {problem}"[:2000]
    log(message, **{"level": "ERROR", "problem": said, "trace": trace, **told})


def metrics(values: Mapping[str, tuple[float, str]], **dimensions: str) -> None:
    """Numbers with their units, for alarms and the dashboard."""
    line = {
        "_aws": {
            "Timestamp": int(time.time() * 1000),
            "CloudWatchMetrics": [
                {
                    "Namespace": NAMESPACE,
                    "Dimensions": [sorted(dimensions)],
                    "Metrics": [{"Name": name, "Unit": unit} for name, (_, unit) in values.items()],
                }
            ],
        },
        **dimensions,
        **{name: number for name, (number, _) in values.items()},
    }
    print(json.dumps(line), flush=True)
