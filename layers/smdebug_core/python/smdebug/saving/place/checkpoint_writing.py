"""Keeps where a training has saved its weights, beside the run."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from smdebug.exceptions import DamagedFile, ObjectMissing, SMDebugTypeError, UnfitFile
from smdebug.files.names import CHECKPOINTS
from smdebug.files.notes.checkpoints import (
    LONGEST_PATH,
    Checkpoint,
    encode_checkpoints,
    parse_checkpoints,
    with_another,
)
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.written_soon import WrittenSoon
from smdebug.storage.base import Storage


class RunCheckpoints:
    """Writes the checkpoints of one run, those of its earlier attempts among them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listed: list[Checkpoint] = []
        self._seen: set[str] = set()
        self._storage: Storage | None = None
        self._attempt: StartedAttempt | None = None
        self._file = WrittenSoon(CHECKPOINTS, self._content, "The list of checkpoints")

    def mark(self, path: Any, step: int) -> None:
        """Note that the weights after this step were saved there."""
        checkpoint = Checkpoint(step, checked_path(path), time.time())
        with self._lock:
            self._listed = with_another(self._listed, checkpoint)
        self._file.change()

    def begin(self, storage: Storage, attempt: StartedAttempt) -> None:
        """Begin to write, as the first step begins."""
        self._storage, self._attempt = storage, attempt
        self._file.begin(storage)
        if self._listed:
            self._file.change()

    def finish(self, seconds: float) -> None:
        """Wait for the file. In a forked child, do nothing."""
        self._file.finish(seconds)

    def _content(self) -> bytes:
        assert self._attempt is not None
        listed = self._of_earlier_attempts()
        with self._lock:
            self._listed = [item for item in self._listed if not self._was_removed(item.path)]
            own = self._listed
        for checkpoint in own:
            listed = with_another(listed, checkpoint)
        return encode_checkpoints(self._attempt.run_id, listed)

    def _was_removed(self, path: str) -> bool:
        """Return whether a file or folder was there, and is no longer: trainers keep the last few alone."""
        is_there = _is_here(path) and os.path.exists(path)  # noqa: PTH110 - False for what cannot be a path
        if is_there:
            self._seen.add(path)
        return not is_there and path in self._seen

    def _of_earlier_attempts(self) -> list[Checkpoint]:
        """Return the checkpoints below the step at which this attempt has resumed."""
        attempt, storage = self._attempt, self._storage
        if attempt is None or storage is None or not attempt.training_run:
            return []
        try:
            known = parse_checkpoints(bytes(storage.read(CHECKPOINTS)))
        except (ObjectMissing, UnfitFile, DamagedFile):
            return []  # a list that cannot be read is written anew
        return [item for item in known if attempt.resumed_at is None or item.step < attempt.resumed_at]


def checked_path(path: Any) -> str:
    """Return the path as text, absolute if it is a folder's or file's; `SMDebugTypeError` if it is none."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise SMDebugTypeError(f"A checkpoint is the path of a file or folder, not {path!r:.100}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise SMDebugTypeError(f"The path of a checkpoint is a text, not {text!r:.100}")
    return (str(Path(text).absolute()) if _is_here(text) else text)[:LONGEST_PATH]


def _is_here(path: str) -> bool:
    return "://" not in path
