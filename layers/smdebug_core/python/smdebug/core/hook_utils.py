"""For code written against smdebug: `smdebug.saving.places` decides where a hook saves."""

from smdebug.saving.places import get_tensorboard_dir, verify_and_get_out_dir

__all__ = [
    "get_tensorboard_dir",
    "verify_and_get_out_dir",
]
