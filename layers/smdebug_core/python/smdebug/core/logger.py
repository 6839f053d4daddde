"""For code written against smdebug: the logger lives in `smdebug.logger`."""

from smdebug.logger import DuplicateLogFilter, MaxLevelFilter, get_logger

__all__ = [
    "DuplicateLogFilter",
    "MaxLevelFilter",
    "get_logger",
]
