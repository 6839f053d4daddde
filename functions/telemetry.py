"""Log lines as JSON, and metrics in CloudWatch's embedded format."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

NAMESPACE = "smdebug"
Unit = Literal["Count", "Seconds"]
_about: ContextVar[Mapping[str, Any] | None] = ContextVar("about", default=None)


def log(message: str, **fields: Any) -> None:
    """Print one line of JSON: what happened, to which run, step and rule."""
    line = {"level": "INFO", "message": message, "timestamp": round(time.time(), 3), **fields}
    print(json.dumps(line, default=str), flush=True)


def log_problem(message: str, problem: BaseException, **fields: Any) -> None:
    """Print a problem with its traceback."""
    trace = "".join(traceback.format_exception(problem))[-4000:]
    text = f"{type(problem).__name__}: {problem}"[:2000]
    log(message, **{"level": "ERROR", "problem": text, "trace": trace, **fields})


def metrics(values: Mapping[str, tuple[float, Unit]]) -> None:
    """Print metrics, for the alarms and the dashboard."""
    # Not at the top: most invocations measure nothing, and a rule's own process never does.
    from aws_lambda_powertools.metrics import EphemeralMetrics

    measured = EphemeralMetrics(namespace=NAMESPACE)
    for name, (number, unit) in values.items():
        measured.add_metric(name, unit, number)
    measured.flush_metrics()


@contextmanager
def about_rule(run: str, rule: str, step: int, level: str | None = None) -> Iterator[None]:
    """Add the run, the rule and the step to everything logged in this block."""
    from smdebug.logger import get_logger

    logger = get_logger()
    before = logger.level, logger.handlers, logger.filters
    token = _about.set({"run": run, "rule": rule, "step": step})
    logger.handlers, logger.filters = [_AsJson()], []  # a rule may log the same at every step
    if level:
        logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.handlers, logger.filters = before[1:]
        _about.reset(token)


class _AsJson(logging.Handler):
    """Log records as lines of JSON, with the fields of `about_rule`."""

    def emit(self, record: logging.LogRecord) -> None:
        line: dict[str, Any] = {
            "level": record.levelname,
            "message": record.getMessage(),
            "timestamp": round(record.created, 3),
            "location": f"{record.filename}:{record.lineno}",
            **(_about.get() or {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = "".join(traceback.format_exception(record.exc_info[1]))[-4000:]
        print(json.dumps(line, default=str), file=sys.stdout, flush=True)
