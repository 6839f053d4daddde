"""For code written against smdebug: the hook of a process lives in `smdebug.saving.singleton`."""

from smdebug.saving.singleton import del_hook, get_hook, set_hook

__all__ = [
    "del_hook",
    "get_hook",
    "set_hook",
]
