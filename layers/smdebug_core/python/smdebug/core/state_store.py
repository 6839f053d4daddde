"""For code written against smdebug: the state beside a checkpoint lives in `smdebug.saving.resume`."""

from smdebug.saving.resume import StateStore

__all__ = [
    "StateStore",
]
