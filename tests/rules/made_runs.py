"""Small runs for rules, written by the library's own writer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from smdebug.files.collections_file import encode_collections
from smdebug.files.names import END_MARKER, collections_key
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.step_writer import StepWriter
from smdebug.storage import open_storage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial

STANDARD_COLLECTIONS = {
    "gradients": ["^gradient"],
    "weights": ["^(?!gradient).*weight"],
    "biases": ["^(?!gradient).*bias"],
    "losses": ["loss"],
}


class MadeRun:
    """A run that is written step by step, and read through `trial()`."""

    def __init__(
        self,
        path: Any = None,
        *,
        workers: int = 1,
        collections: Mapping[str, Iterable[str]] = STANDARD_COLLECTIONS,
    ):
        self.storage = MemoryStorage() if path is None else open_storage(path)
        self.num_workers = workers
        self._mode_steps: dict[ModeKeys, int] = {}
        index = {
            name: {
                "name": name,
                "include_regex": list(regexes),
                "tensor_names": [],
                "reduction_config": None,
                "save_config": None,
                "save_histogram": True,
            }
            for name, regexes in collections.items()
        }
        data = encode_collections({"collections": index, "_meta": {"num_workers": workers}})
        for rank in range(workers):
            self.storage.write(collections_key(f"worker_{rank}"), data)

    def save(
        self,
        step: int,
        tensors: Mapping[str, Any],
        *,
        mode: ModeKeys = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        rank: int = 0,
    ) -> MadeRun:
        if mode_step is None:
            mode_step = step if mode is ModeKeys.GLOBAL else self._mode_steps.get(mode, -1) + 1
        self._mode_steps[mode] = mode_step
        writer = StepWriter(self.storage, step=step, worker=f"worker_{rank}", mode=mode, mode_step=mode_step)
        for name, value in tensors.items():
            writer.write_tensor(name, np.asarray(value))
        writer.commit()
        return self

    def end(self) -> MadeRun:
        self.storage.write(END_MARKER, b"")
        return self

    def trial(self, name: str = "made"):
        return create_trial(self.storage, name=name)


def made_run(steps: Mapping[int, Mapping[str, Any]], path: Any = None, **options: Any) -> MadeRun:
    """An ended run of one worker with these tensors at these global steps."""
    run = MadeRun(path, **options)
    for step, tensors in steps.items():
        run.save(step, tensors)
    return run.end()
