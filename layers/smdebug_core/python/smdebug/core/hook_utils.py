"""For code written against smdebug: where a hook saves to is said by `smdebug.saving.places`."""

from smdebug.saving.places import get_tensorboard_dir, verify_and_get_out_dir

__all__ = [
    "get_tensorboard_dir",
    "verify_and_get_out_dir",
]
