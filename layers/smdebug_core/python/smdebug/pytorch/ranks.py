"""The rank of this process, and how ranks agree to stop.

They agree through the key-value store that connects them, not a collective, which would hang if a rank did
not join. The first rank decides, and writes for each step at which ranks ask whether it was the last.
The others read that, and wait for it at most as long as the first rank lives.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torch import distributed

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving.process.ranks import ALONE, by_horovod, by_torch

FIRST_ANSWER = timedelta(seconds=60)  # the first rank may still be compiling
LATER_ANSWER = timedelta(minutes=30)  # it may evaluate, or save a checkpoint, while others wait
_GO_ON, _LAST = "go on", "last"
_KEPT = 16  # answers kept in the store: ranks are never further apart


def rank_and_size() -> tuple[int, int]:
    """Return rank and number of processes: (0, 1) for a training of one process."""
    return by_torch() or by_horovod() or ALONE


class Agreement:
    """Lets all ranks stop after the same step. Each needs a hook; if a rank has none, no rank stops."""

    def __init__(self, store: Any, rank: int, size: int, name: str):
        self._store = store
        self._rank = rank
        self._size = size
        self._name = f"smdebug/{name}"
        self._patience = FIRST_ANSWER
        self._answers_set: list[str] = []
        self._complained = False
        store.add(f"{self._name}/hooks", 1)

    @classmethod
    def among_ranks(cls, name: str) -> Agreement | None:
        """Return an agreement of the processes of `torch.distributed`; None if there is only one."""
        rank, size = rank_and_size()
        if size == 1 or not (distributed.is_available() and distributed.is_initialized()):
            return None
        from torch.distributed import distributed_c10d

        return cls(distributed_c10d._get_default_store(), rank, size, name)

    def is_last(self, wanted: bool, mode: ModeKeys, mode_step: int) -> bool:
        """Return whether this step, which has just ended, is the last; the first rank decides by `wanted`."""
        if mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
            return False  # often run on one rank alone
        key = f"{self._name}/{mode.name}/{mode_step}"
        if self._rank != 0:
            return self._answer(key) == _LAST
        wanted = wanted and self._all_are_here()
        self._store.set(key, _LAST if wanted else _GO_ON)
        self._answers_set.append(key)
        if len(self._answers_set) > _KEPT:
            self._store.delete_key(self._answers_set.pop(0))
        return wanted

    def _answer(self, key: str) -> str:
        try:
            self._store.wait([key], self._patience)
        except Exception as error:
            raise SMDebugRuntimeError(f"no answer from the first rank: {error}") from error
        self._patience = LATER_ANSWER
        return str(self._store.get(key).decode())

    def _all_are_here(self) -> bool:
        hooks = self._store.add(f"{self._name}/hooks", 0)
        if hooks < self._size and not self._complained:
            self._complained = True
            get_logger().warning(
                "Stop requested, but only %d of %d processes have a hook: the others would wait for the "
                "stopped ones forever, so the training continues. Make the hook in every process.",
                hooks,
                self._size,
            )
        return bool(hooks >= self._size)
