"""Log lines as JSON, and metrics in CloudWatch's embedded format."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

from smdebug.secrets.texts import redacted

NAMESPACE = "smdebug"
Unit = Literal["Count", "Seconds"]
_EVERYTHING = 1  # a level; 0 is that of the root logger


def log(message: str, **fields: Any) -> None:
    """Print one line of JSON: what happened, to which run, step and rule."""
    line = {"level": "INFO", "message": message, "timestamp": round(time.time(), 3), **fields}
    print(json.dumps(_shown(line), default=str), flush=True)


def log_problem(message: str, problem: BaseException, **fields: Any) -> None:
    """Print a problem with its traceback."""
    trace = "".join(traceback.format_exception(problem))[-4000:]
    text = f"{type(problem).__name__}: {problem}"[:2000]
    log(message, **{"level": "ERROR", "problem": text, "trace": trace, **fields})


def _shown(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line without the secrets that its texts may hold, such as those of an error of a rule."""
    return {name: redacted(value) if isinstance(value, str) else value for name, value in line.items()}


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
    """Add the run, the rule and the step to everything logged in this block, from that level on.

    Blocks of several threads may overlap: on a laptop one process can run several functions at once.
    """
    block = _json_logging.begin({"run": run, "rule": rule, "step": step}, level)
    token = _about.set(block)
    try:
        yield
    finally:
        _about.reset(token)
        _json_logging.end()


class _Block(NamedTuple):
    """What a block's log lines name, and from which level on they are logged."""

    fields: Mapping[str, Any]
    level: int


class _JsonLogging:
    """Has the library's logger print JSON from the beginning of the first block to the end of the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._redirected = ExitStack()

    def begin(self, fields: Mapping[str, Any], level: str | None) -> _Block:
        from smdebug.logger import own_level, redirected

        usual = own_level()
        with self._lock:
            if not self._blocks:
                # Each block's own level is the handler's. No filter of repeated messages: a rule may log the
                # same at every step.
                as_json = _AsJson(_Block({}, usual))
                self._redirected.enter_context(redirected(_EVERYTHING, [as_json]))
            self._blocks += 1
        return _Block(fields, logging.getLevelNamesMapping()[level.upper()] if level else usual)

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._redirected.close()


class _AsJson(logging.Handler):
    """Log records as lines of JSON, with the fields of `about_rule`."""

    def __init__(self, elsewhere: _Block):
        super().__init__()
        self._elsewhere = elsewhere  # for threads that log outside of any block

    def emit(self, record: logging.LogRecord) -> None:
        block = _about.get() or self._elsewhere
        if record.levelno < block.level:
            return
        line: dict[str, Any] = {
            "level": record.levelname,
            "message": record.getMessage(),
            "timestamp": round(record.created, 3),
            "location": f"{record.filename}:{record.lineno}",
            **block.fields,
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = "".join(traceback.format_exception(record.exc_info[1]))[-4000:]
        print(json.dumps(_shown(line), default=str), file=sys.stdout, flush=True)


_json_logging = _JsonLogging()
_about: ContextVar[_Block | None] = ContextVar("about", default=None)
