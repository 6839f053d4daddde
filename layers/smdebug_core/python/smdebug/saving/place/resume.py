"""Step numbers of a training that is resumed from a checkpoint.

A configuration file (SageMaker's `checkpointconfig.json`) names the folder of checkpoints. Whenever a file
in it changes, the steps counted so far are noted in `metadata.json` beside it, and travel with the checkpoint
to wherever the training starts next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from smdebug.config.constants import (
    LATEST_GLOBAL_STEP_SAVED,
    LATEST_GLOBAL_STEP_SEEN,
    LATEST_MODE_STEP,
    METADATA_FILENAME,
    SAGEMAKER_UPLOADED_MARK,
    TRAINING_RUN,
)
from smdebug.config.json_config import get_checkpoint_dir_from_json_config
from smdebug.files.names import TEMPORARY_SUFFIX
from smdebug.logger import get_logger
from smdebug.mode_keys import ALLOWED_MODE_NAMES, ModeKeys
from smdebug.saving.planning.step_clock import StepClock

RUN_ID = "run-id"


class SavedState(NamedTuple):
    """The steps of a training when its checkpoint was made."""

    training_run: int
    step: int
    mode_steps: Mapping[ModeKeys, int]
    run_id: str | None = None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SavedState | None:
        """Return the state in one record of `metadata.json`, or None if it counts no step yet.

        ValueError or TypeError if it is not such a record.
        """
        if record[LATEST_GLOBAL_STEP_SEEN] == "":
            return None
        modes = record.get(LATEST_MODE_STEP) or {}
        return cls(
            int(record[TRAINING_RUN] or 0),
            int(record[LATEST_GLOBAL_STEP_SEEN]),
            {ModeKeys[m]: int(n) for m, n in modes.items() if m in ALLOWED_MODE_NAMES and n != ""},
            record.get(RUN_ID),
        )

    def to_record(self, last_saved_step: int | None) -> dict[str, Any]:
        run_id = {RUN_ID: self.run_id} if self.run_id else {}
        return {
            TRAINING_RUN: self.training_run,
            LATEST_GLOBAL_STEP_SAVED: last_saved_step,
            LATEST_GLOBAL_STEP_SEEN: self.step,
            LATEST_MODE_STEP: {mode.name: step for mode, step in self.mode_steps.items()},
            **run_id,
        }


class StateStore:
    """The notes beside the checkpoints; without a checkpoint folder it does nothing."""

    def __init__(self) -> None:
        folder = get_checkpoint_dir_from_json_config()
        self._folder = Path(folder) if folder else None
        self._notes = self._folder / METADATA_FILENAME if self._folder else None
        self._records = self._read()
        self._seen = self._checkpoint()

    @property
    def is_active(self) -> bool:
        """Whether there is a checkpoint folder to watch."""
        return self._folder is not None

    def get_last_saved_state(self) -> Any:
        """Return the record of the latest checkpoint, or None; of other entries, the last."""
        return max(reversed(self._records), key=_order, default=None)

    def last_state(self) -> SavedState | None:
        """Return the state of the latest checkpoint, or None."""
        return _state_in(self.get_last_saved_state())

    def is_checkpoint_updated(self) -> bool:
        """Return whether any file of the checkpoint has changed since the last call."""
        if self._folder is None:
            return False
        now = self._checkpoint()
        changed = bool(now) and now != self._seen
        self._seen = now
        return changed

    def update_state(self, state: Any) -> None:
        """Add a record to the notes. Scripts also keep entries of their own here."""
        if self._notes is None:
            return
        text = json.dumps([*self._records, state])
        temporary = self._notes.with_name(METADATA_FILENAME + TEMPORARY_SUFFIX)
        temporary.write_text(text)
        temporary.replace(self._notes)
        self._records = json.loads(text)

    def _checkpoint(self) -> dict[str, tuple[int, int]]:
        """Return size and modification time of every file: a rewritten file may keep its size."""
        found: dict[str, tuple[int, int]] = {}
        try:
            for path in self._folder.iterdir() if self._folder else ():
                if path.name.startswith(METADATA_FILENAME) or SAGEMAKER_UPLOADED_MARK in path.name:
                    continue
                state = path.stat()
                found[path.name] = (state.st_size, state.st_mtime_ns)
        except OSError:  # it does not exist yet, or a file was removed meanwhile
            return self._seen if hasattr(self, "_seen") else {}
        return found

    def _read(self) -> list[Any]:
        if self._notes is None or not self._notes.is_file():
            return []
        records: list[Any] = []
        problem: object = "no entry counts a step"
        try:
            records += json.loads(self._notes.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            problem = error
        else:
            if any(map(_state_in, records)) or all(map(_is_empty, records)):
                return records
        get_logger().warning(
            "%s could not be read, so steps are counted from the beginning: %r",
            self._notes,
            problem,
        )
        return records


def _state_in(record: Any) -> SavedState | None:
    """Return the state in an entry of the notes, or None if it is none."""
    try:
        return SavedState.from_record(record)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _is_empty(record: Any) -> bool:
    return isinstance(record, Mapping) and record.get(LATEST_GLOBAL_STEP_SEEN) == ""


def _order(record: Any) -> tuple[int, int]:
    state = _state_in(record)
    return (-1, 0) if state is None else (state.step, state.training_run)


class CheckpointNotes:
    """Notes the step beside the checkpoint whenever the checkpoint has changed."""

    def __init__(self, store: StateStore, training_run: int, run_id: str):
        self._store = store
        self._training_run = training_run
        self._run_id = run_id

    def note(self, clock: StepClock, last_saved_step: int | None) -> None:
        """Note the step if the checkpoint was written since the last call."""
        if not self._store.is_checkpoint_updated():
            return
        state = SavedState(self._training_run, clock.step, clock.mode_steps, self._run_id)
        try:
            self._store.update_state(state.to_record(last_saved_step))
        except OSError as error:
            get_logger().warning("The step could not be noted beside the checkpoint: %s", error)
