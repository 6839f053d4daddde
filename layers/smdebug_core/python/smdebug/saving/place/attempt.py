"""The run's id and the number of its attempt, which distinguish steps that were written twice."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from typing import Any, NamedTuple

from smdebug.config.constants import TRAINING_JOB_NAME_ENV_VAR
from smdebug.exceptions import ObjectMissing, StorageError
from smdebug.files.names import collections_key
from smdebug.logger import get_logger
from smdebug.saving.place.deadline import within
from smdebug.saving.place.resume import SavedState
from smdebug.saving.place.trouble import warn_of_storage
from smdebug.storage.base import Storage

RUN_ID_ENV_VAR = "SMDEBUG_RUN_ID"
# Variables that launchers set for all their processes. torchrun sets "none" where there is no id.
_LAUNCHERS = (TRAINING_JOB_NAME_ENV_VAR, "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")


class StartedAttempt(NamedTuple):
    """A run, and how often it was started again."""

    run_id: str
    training_run: int = 0
    #: The first step of an attempt that is not the first: readers keep earlier steps below it.
    resumed_at: int | None = None

    def to_meta(self) -> dict[str, Any]:
        """Return the attempt as index files and collections files name it."""
        named = {"run_id": self.run_id, "training_run": self.training_run}
        return named if self.resumed_at is None else {**named, "resumed_at": self.resumed_at}

    @classmethod
    def of(
        cls,
        storage: Storage,
        worker: str,
        num_workers: int,
        *,
        run_id: str | None = None,
        resumed: SavedState | None = None,
        first_step: int = 0,
    ) -> StartedAttempt:
        """Return this attempt, from the run's checkpoint and the files of earlier attempts.

        Without such a checkpoint it begins with `first_step`.
        """
        earlier = left_behind(storage, worker)
        if resumed is not None:
            again = resumed.training_run + 1
            known = run_id or resumed.run_id
        else:
            again, known = 0, run_id
        if earlier is not None and known in (None, earlier.run_id):
            known = earlier.run_id
            again = max(again, earlier.training_run + 1)
            get_logger().warning(
                "%s holds an unfinished run: this is attempt %d of run %s, and its steps replace those "
                "of the same number. If another process still saves there, choose another out_dir.",
                storage.location,
                again,
                known,
            )
        elif earlier is not None:
            get_logger().error(
                "%s holds steps of another run, %s: those of this one (%s) will be mixed with them. "
                "Choose another out_dir.",
                storage.location,
                earlier.run_id,
                known,
            )
        begins = first_step if resumed is None else resumed.step + 1
        is_first = resumed is None and earlier is None
        return cls(known or new_run_id(storage.location, num_workers), again, None if is_first else begins)


def left_behind(storage: Storage, worker: str) -> StartedAttempt | None:
    """Return the attempt that wrote the worker's collections file, if this library wrote one."""
    try:
        data = within(lambda: storage.read(collections_key(worker)), storage.location)
        meta = json.loads(data)["_meta"]
        return StartedAttempt(str(meta["run_id"]), int(meta.get("training_run", 0)))
    except (ObjectMissing, ValueError, KeyError, TypeError):
        return None
    except StorageError as error:
        warn_of_storage(storage, error, "The content of %s is unknown: %s", storage.location)
        return None


def new_run_id(location: str, num_workers: int) -> str:
    """Return an id for the run; all its workers derive the same."""
    if given := os.environ.get(RUN_ID_ENV_VAR):
        return given
    for variable in _LAUNCHERS:
        if (name := os.environ.get(variable)) and name != "none":
            return hashlib.sha256(f"{name} {location}".encode()).hexdigest()[:32]
    if num_workers > 1:
        return hashlib.sha256(location.encode()).hexdigest()[:32]
    return uuid.uuid4().hex
