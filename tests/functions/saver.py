"""Workers that save what a test requests, as a hook would, or as the old library did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smdebug.files.collections_file import encode_collections
from smdebug.files.names import END_MARKER, collections_key
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.step_writer import StepWriter
from smdebug.storage import Storage

FAILING = {"gradient/fc": np.array([np.nan, 1], np.float32)}
HEALTHY = {"gradient/fc": np.array([0.5, 1], np.float32)}


class Saver:
    """One worker of a run."""

    def __init__(
        self,
        place: Storage,
        worker: str = "worker_0",
        *,
        num_workers: int = 1,
        run_id: str | None = "run-1",
        training_run: int = 0,
        replicas: int = 0,
    ):
        self.place = place
        self.worker = worker
        self.num_workers = num_workers
        self._replicas = {"chief": "worker_0", "workers": replicas} if replicas else None
        self._attempt: dict[str, Any] = {}
        if run_id is not None:
            self._attempt = {"run_id": run_id, "training_run": training_run}
        self._previous: int | None = None

    def begin(self, **note: Any) -> Saver:
        """Write the collections file."""
        gradients = {
            "name": "gradients",
            "include_regex": ["^gradient"],
            "tensor_names": [],
            "reduction_config": None,
            "save_config": None,
            "save_histogram": True,
        }
        meta = {"num_workers": self.num_workers, **self._attempt}
        if self._replicas is not None:
            meta["replicas"] = self._replicas
        meta |= note
        content = {"collections": {"gradients": gradients}, "_meta": meta}
        self.place.write(collections_key(self.worker), encode_collections(content))
        return self

    def close(self) -> Saver:
        """Write the closing note, which names the last step; the old library has none."""
        if self._attempt:
            self.begin(closed=True, last_step=self._previous)
        return self

    def save(
        self,
        step: int,
        tensors: Mapping[str, Any] = HEALTHY,
        mode: ModeKeys = ModeKeys.TRAIN,
        mode_step: int | None = None,
    ) -> None:
        """Write one step: its event file, then its index file."""
        extras: dict[str, Any] = {}
        if self._attempt:
            extras = {**self._attempt, "previous_step": self._previous, "saved_at": 1_700_000_000.5}
        writer = StepWriter(
            self.place,
            step=step,
            worker=self.worker,
            mode=mode,
            mode_step=step if mode_step is None else mode_step,
            meta_extras=lambda: extras,
        )
        for name, value in tensors.items():
            writer.write_tensor(name, value)
        writer.commit()
        self._previous = step

    def end(self) -> None:
        """Close, and write the end marker."""
        self.close()
        self.place.write(END_MARKER, b"")
