"""Runs of which steps are lost: on a full disk, or because their index files are gone."""

from __future__ import annotations

import errno

import smdebug
from smdebug.files.names import index_key
from smdebug.runs import open_run
from smdebug.storage.memory import MemoryStorage

WORKER = "worker_0"


class FullDisk(MemoryStorage):
    """A place where nothing can be written whose key names one of these steps."""

    def __init__(self, *steps: int):
        super().__init__()
        self.full = {f"/{step:012}" for step in steps}

    def create(self, key):
        if any(step in f"/{key}" for step in self.full):
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().create(key)


def train(storage, *steps: int, killed: bool = False) -> None:
    """A training that saves these steps; one that is killed writes nothing at its end."""
    every = smdebug.SaveConfig(save_steps=list(steps))
    with smdebug.Hook(storage, save_config=every) as hook:
        for step in range(max(steps, default=-1) + 1):
            with hook.step():
                if step in steps:
                    hook.record("loss", 1.0)
        hook.flush()
        before = {key: storage.read(key) for key in storage.list("")}
    if killed:
        for key in list(storage.list("")):
            if key not in before:
                storage.delete(key)
        for key, data in before.items():
            storage.write(key, data)


def remove(storage, *steps: int, worker: str = WORKER) -> None:
    for step in steps:
        storage.delete(index_key(step, worker))


def missing(storage) -> str:
    return str(open_run(storage).missing_steps)


def meta_of(attempt: int, previous: int | None) -> dict[str, object]:
    return {"run_id": "a", "training_run": attempt, "previous_step": previous}
