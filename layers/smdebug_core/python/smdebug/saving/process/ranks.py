"""The rank of this process, from libraries for distributed training."""

from __future__ import annotations

import sys
from typing import Any

ALONE = (0, 1)
"""The rank and the number of processes of a training with one process."""

_HOROVOD = ("horovod.torch", "horovod.tensorflow", "horovod.tensorflow.keras", "horovod.mxnet")


def by_torch() -> tuple[int, int] | None:
    """Return rank and number of processes from `torch.distributed`, if the training uses it."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def by_horovod() -> tuple[int, int] | None:
    """Return rank and number of processes from Horovod, if the training uses it."""
    for name in _HOROVOD:
        horovod: Any = sys.modules.get(name)
        if horovod is not None and horovod.is_initialized():
            return int(horovod.rank()), int(horovod.size())
    return None
