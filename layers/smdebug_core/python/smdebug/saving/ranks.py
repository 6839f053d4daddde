"""Which of the processes that train together this one is, where a library beside the framework tells it."""

from __future__ import annotations

import sys
from typing import Any

ALONE = (0, 1)
"""The rank of a process that trains by itself, and how many there are."""

_HOROVOD = ("horovod.torch", "horovod.tensorflow", "horovod.tensorflow.keras", "horovod.mxnet")


def by_torch() -> tuple[int, int] | None:
    """This process's rank and how many there are, if the training has started `torch.distributed`."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def by_horovod() -> tuple[int, int] | None:
    """This process's rank and how many there are, if the training has started Horovod."""
    for name in _HOROVOD:
        horovod: Any = sys.modules.get(name)
        if horovod is not None and horovod.is_initialized():
            return int(horovod.rank()), int(horovod.size())
    return None
