"""The library's logger, set up from the environment on first use."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from smdebug.plain_text import escaped

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "off": logging.CRITICAL + 10,
}
REPEATS_ALLOWED = 3
MESSAGES_REMEMBERED = 10_000


class DuplicateLogFilter(logging.Filter):
    """Passes a message a few times, then drops it.

    Messages are compared with their values: a warning about another tensor is another message.
    """

    def __init__(self, repeats_allowed: int = REPEATS_ALLOWED):
        super().__init__()
        self.repeats_allowed = repeats_allowed
        self.seen: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if len(self.seen) >= MESSAGES_REMEMBERED:
            self.seen.clear()
        message = record.getMessage()
        self.seen[message] += 1
        return self.seen[message] <= self.repeats_allowed


class MaxLevelFilter(logging.Filter):
    """Passes messages below a level."""

    def __init__(self, max_level: int):
        super().__init__()
        self.max_level = max_level

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < self.max_level


def get_logger(name: str = "smdebug") -> logging.Logger:
    """Return the logger of that name, set up by `SMDEBUG_LOG_LEVEL` and the like."""
    logger = logging.getLogger(name)
    if not getattr(logger, "_smdebug_is_set_up", False):
        _set_up(logger)
        logger._smdebug_is_set_up = True  # type: ignore[attr-defined]
    return logger


class _Output(NamedTuple):
    """From which level on a logger logs, to what, and what it drops."""

    level: int
    handlers: Sequence[logging.Handler]
    filters: Sequence[Any]


_outputs: list[_Output] = []  # the logger's own, and those of `redirected` that have not ended
_changing = threading.Lock()


def own_level() -> int:
    """Return the level that the library's logger has when it is not redirected."""
    with _changing:
        return _outputs[0].level if _outputs else get_logger().level


@contextmanager
def redirected(
    level: int, handlers: Sequence[logging.Handler], filters: Sequence[Any] = ()
) -> Iterator[None]:
    """Let the library log to these handlers in this block, and then as before.

    Blocks of several threads may overlap in any way: the one that began last holds.
    """
    output = _Output(level, handlers, filters)
    with _changing:
        if not _outputs:
            logger = get_logger()
            _outputs.append(_Output(logger.level, logger.handlers, logger.filters))
        _outputs.append(output)
        _use(output)
    try:
        yield
    finally:
        with _changing:
            del _outputs[next(at for at, other in enumerate(_outputs) if other is output)]
            _use(_outputs[-1])
            if len(_outputs) == 1:
                _outputs.clear()


def _use(output: _Output) -> None:
    logger = get_logger()
    logger.handlers, logger.filters = list(output.handlers), list(output.filters)
    logger.setLevel(output.level)


def _set_up(logger: logging.Logger) -> None:
    level = LEVELS.get(os.environ.get("SMDEBUG_LOG_LEVEL", "info").strip().lower(), logging.INFO)
    context = os.environ.get("SMDEBUG_LOG_CONTEXT", f"{os.uname().nodename}:{os.getpid()}")
    form = SafeFormatter(
        f"[%(asctime)s.%(msecs)03d {context.replace('%', '%%')} %(levelname)s "
        "%(filename)s:%(lineno)d] %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    if logger.level == logging.NOTSET:  # otherwise the program has chosen one
        logger.setLevel(level)
    logger.propagate = False
    logger.addFilter(DuplicateLogFilter())
    for handler in _handlers():
        handler.setFormatter(form)
        logger.addHandler(handler)


def _handlers() -> list[logging.Handler]:
    out = _CurrentStream("stdout")
    handlers: list[logging.Handler] = [out]
    if os.environ.get("SMDEBUG_LOG_ALL_TO_STDOUT", "TRUE").strip().lower() == "false":
        out.addFilter(MaxLevelFilter(logging.ERROR))
        err = _CurrentStream("stderr")
        err.setLevel(logging.ERROR)
        handlers.append(err)
    if path := os.environ.get("SMDEBUG_LOG_PATH"):
        handlers.append(logging.FileHandler(path, delay=True))
    return handlers


class SafeFormatter(logging.Formatter):
    """Escapes control characters, which a name from a file may hold, and leaves secrets out."""

    def format(self, record: logging.LogRecord) -> str:
        from smdebug.secrets.texts import redacted  # at the first message: its patterns take a while

        return escaped(redacted(super().format(record)), keep="\n\t")


class _CurrentStream(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the current `sys.stdout` or `sys.stderr`, which notebooks and tests replace."""

    def __init__(self, name: str):
        self._stream_name = name
        super().__init__()

    @property
    def stream(self):  # type: ignore[no-untyped-def]
        return getattr(sys, self._stream_name)

    @stream.setter
    def stream(self, value: object) -> None:
        pass
