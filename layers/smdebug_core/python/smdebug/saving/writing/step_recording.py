"""The tensors of one step, copied, until they are written in the background."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.dtypes import dtype_number
from smdebug.files.event_writing import as_saved_array
from smdebug.files.framing import Checksum
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.step_writer import MetaExtras, StepWriter
from smdebug.storage.base import Storage


class StepJob(NamedTuple):
    """A step that is ready to be written, in the two halves that have different orders."""

    step: int
    size: int
    """The bytes that it keeps in memory until it is written."""
    write: Callable[[], object]
    """Write the event file. Steps do this in parallel."""
    commit: Callable[[], object]
    """Write the index file. Steps do this in order."""
    abort: Callable[[], object]
    """Leave no trace; called after either half failed."""
    amends: bool = False
    """Whether it adds to a step that was handed over before."""


class StepRecording:
    """The tensors of one step, copied, until they are written in the background.

    Offers what `StepWriter` offers; `job` turns it into what `BackgroundWriter.submit` takes.
    """

    def __init__(
        self,
        *,
        step: int,
        worker: str,
        mode: ModeKeys,
        mode_step: int,
        checksum: Checksum = "constant",
        meta_extras: MetaExtras | None = None,
    ):
        self._step = step
        self._worker = worker
        self._mode = mode
        self._mode_step = mode_step
        self._checksum: Checksum = checksum
        self._meta_extras = meta_extras
        self._calls: deque[Callable[[StepWriter], object]] = deque()
        self._size = 0

    @property
    def size(self) -> int:
        """The bytes it holds."""
        return self._size

    def write_tensor(
        self,
        name: str,
        array: Any,
        wall_time: float | None = None,
        mode: ModeKeys | None = None,
        mode_step: int | None = None,
        *,
        owned: bool = False,
    ) -> None:
        """Record a value. It is copied unless `owned`, which promises that it will not change."""
        saved = as_saved_array(array)
        dtype_number(saved.dtype)  # raise here, not in the background, if it cannot be saved
        if not owned and saved is array:
            saved = np.array(saved)
        moment = time.time() if wall_time is None else wall_time
        self._size += saved.nbytes + len(name)
        self._calls.append(lambda writer: writer.write_tensor(name, saved, moment, mode, mode_step))

    def write_shape(self, name: str, shape: Sequence[int], original_name: str | None = None) -> None:
        """Record a shape without a value."""
        shape = tuple(shape)
        self._size += len(name)
        self._calls.append(lambda writer: writer.write_shape(name, shape, original_name))

    def job(self, storage: Storage) -> StepJob:
        """Return the job that writes it to `storage`. It can be done once."""
        writer = StepWriter(
            storage,
            step=self._step,
            worker=self._worker,
            mode=self._mode,
            mode_step=self._mode_step,
            checksum=self._checksum,
            meta_extras=self._meta_extras,
        )

        def write() -> None:
            while self._calls:  # each copy is freed as soon as it is written
                try:
                    self._calls.popleft()(writer)
                except (SMDebugTypeError, SMDebugValueError) as error:
                    get_logger().warning("A tensor of step %d is left out: %s", self._step, error)
            writer.commit_events()

        return StepJob(self._step, self._size, write, writer.commit_index, writer.abort)
