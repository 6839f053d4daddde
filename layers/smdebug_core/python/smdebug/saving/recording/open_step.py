"""A step while it runs: copies of what was recorded, until they are written in the background."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from smdebug.config.reduction_config import Reduction
from smdebug.files.framing import Checksum
from smdebug.files.replicas import ROOTS, root_digest
from smdebug.numbers.reductions import compute_reductions, get_reduction_tensor_name
from smdebug.saving.arrays.copies import CopyMemory
from smdebug.saving.observations.step_observations import Handed
from smdebug.saving.planning.save_plan import Wanted
from smdebug.saving.planning.step_clock import StepClock
from smdebug.saving.writing.step_recording import StepJob, StepRecording
from smdebug.saving.writing.step_writer import StepWriter
from smdebug.saving.writing.tensorboard_export import TensorboardStep
from smdebug.storage.base import Storage

COPIED_FOR_REDUCTIONS = 4 << 20
"""Tensors up to this many bytes of which only reductions are saved are copied, and reduced in the
background. Larger ones are reduced at once, which takes longer than a copy but no memory."""


class OpenStep(StepRecording):
    """One worker's step, open for recording."""

    def __init__(
        self,
        clock: StepClock,
        worker: str,
        *,
        checksum: Checksum,
        meta_extras: Callable[[], Mapping[str, Any]],
        keep_colon_index: bool = False,
        board: TensorboardStep | None = None,
        memory: CopyMemory | None = None,
    ):
        super().__init__(
            step=clock.step,
            worker=worker,
            mode=clock.mode,
            mode_step=clock.mode_step,
            checksum=checksum,
            meta_extras=self._extras,
        )
        self.clock = clock
        self.interrupted = False
        self._more_extras = meta_extras
        self._saved_at = 0.0
        self._keep_colon_index = keep_colon_index
        self._board = board
        self._roots: dict[str, str] = {}
        self._memory = memory
        # A step that makes no copies counts as one only if there is memory to be freed.
        self._copies = memory.for_a_step() if memory is not None and memory.size else None
        self.has_records = False

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return self.has_records or bool(self._board)

    def record(self, name: str, array: np.ndarray[Any, Any], wanted: Wanted, owned: bool) -> None:
        """Take what is wanted of the array; unless `owned`, the caller may change it afterwards."""
        now = time.time()
        board = self._board
        histogram = wanted.histogram_of if board is not None else None
        if histogram is not None and not TensorboardStep.has_histogram(array):
            histogram = None
        if wanted.shape:
            self.write_shape(name, array.shape)
        reduced_later = wanted.reductions and array.nbytes <= COPIED_FOR_REDUCTIONS
        if not owned and (wanted.raw or histogram or reduced_later):
            array, owned = self.copied(array), True
        if wanted.reductions:
            self._record_reductions(name, array, wanted.reductions, now, owned)
        if wanted.raw:
            self.write_tensor(name, array, now, owned=True)
        elif owned:
            self._size += array.nbytes
        if board is not None:
            if histogram:
                board.add_histogram(f"{histogram}/{name}", array, now)
            if wanted.is_scalar and array.size == 1 and array.dtype.kind in "biuf":
                board.add_scalar(name, float(array.reshape(-1)[0]), now)

    def copied(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return a copy of the array, to be recorded as `owned`."""
        if self._copies is None:
            if self._memory is None:
                return np.array(array)
            self._copies = self._memory.for_a_step()
        return self._copies.of(array)

    def record_scalar(self, name: str, array: Any, wall_time: float | None = None) -> None:
        """Take a scalar, with the user's timestamp or the current time."""
        wall_time = time.time() if wall_time is None else wall_time
        self.write_tensor(name, array, wall_time, owned=True)
        if self._board is not None:
            self._board.add_scalar(name, float(array.reshape(-1)[0]), wall_time)

    def write_later(
        self, tensors: Callable[[], Iterable[Handed]], *, beside: bool = False, alone: bool = False
    ) -> None:
        """Write arrays that are computed in the background. One that cannot be is left out.

        The index file holds the roots of matrices of digests. What is written `beside` the step's tensors is
        none of them, and makes no step unless it is written `alone`, without any.
        """
        now = time.time()

        def compute_and_write(handed: Handed, writer: StepWriter) -> None:
            array = handed.make()
            writer.write_tensor(handed.name, array, now, beside=beside)
            if handed.digested is not None:
                kind, names = handed.digested
                self._roots[kind] = root_digest(names, array.tolist())

        def come_next(writer: StepWriter) -> None:
            writer.is_beside_alone = alone
            calls = [partial(compute_and_write, handed) for handed in tensors()]
            self._calls.extendleft(reversed(calls))

        self._calls.append(come_next)
        self.has_records = self.has_records or not beside

    def write_tensor(self, *args: Any, **kwargs: Any) -> None:
        super().write_tensor(*args, **kwargs)
        self.has_records = True

    def write_shape(self, *args: Any, **kwargs: Any) -> None:
        super().write_shape(*args, **kwargs)
        self.has_records = True

    def job_after(
        self,
        storage: Storage,
        before_index: Callable[[], object],
        after_index: Callable[[int], object],
    ) -> StepJob:
        """Return the job that writes it; the two functions are called before and after its index file."""
        self._saved_at = time.time()
        if self._copies is not None:
            self._copies.end()
        job, board = self.job(storage), self._board

        def write() -> None:
            job.write()
            if board:
                board.write()

        def commit() -> None:
            if self.has_records:
                before_index()
                job.commit()
                after_index(job.step)

        return StepJob(job.step, job.size, write, commit, job.abort)

    def _extras(self) -> Mapping[str, Any]:
        interrupted = {"interrupted": True} if self.interrupted else {}
        roots = {ROOTS: self._roots} if self._roots else {}
        return {**self._more_extras(), "saved_at": self._saved_at, **roots, **interrupted}

    def _record_reductions(
        self,
        name: str,
        array: np.ndarray[Any, Any],
        reductions: tuple[Reduction, ...],
        wall_time: float,
        owned: bool,
    ) -> None:
        names = {
            reduction: get_reduction_tensor_name(
                name, reduction.name, reduction.abs, not self._keep_colon_index
            )
            for reduction in reductions
        }
        if not owned:
            for reduction, value in compute_reductions(array, reductions).items():
                self.write_tensor(names[Reduction(*reduction)], value, wall_time, owned=True)
            return

        def reduce_and_write(writer: StepWriter) -> None:
            for reduction, value in compute_reductions(array, reductions).items():
                writer.write_tensor(names[Reduction(*reduction)], value, wall_time)

        self._calls.append(reduce_and_write)
        self.has_records = True
