"""For code written against smdebug: hooks live in `smdebug.saving.hook`."""

from smdebug.saving.hook import BaseHook, CallbackHook, ScalarCache

__all__ = [
    "BaseHook",
    "CallbackHook",
    "ScalarCache",
]
