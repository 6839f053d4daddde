"""Saved values for TensorBoard: one small file per saved step, in a folder per mode."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smdebug.logger import get_logger
from smdebug.saving.planning.step_clock import StepClock
from smdebug.storage.base import Buffer, Storage

if TYPE_CHECKING:
    from smdebug.files.framing import EncodedRecord

_HAS_HISTOGRAM = frozenset("iufcV")  # V: bfloat16 and its like, as numpy sees them


class TensorboardExport:
    """A place for TensorBoard files; `--logdir` is that place."""

    def __init__(self, storage: Storage, prefix: str = ""):
        self._storage = storage
        self._prefix = prefix
        self._writer = f"{os.getpid()}_{socket.gethostname()}"
        self._has_complained = False

    def step(self, clock: StepClock) -> TensorboardStep:
        """Return what takes the values of a step. They are shown at its step of the training."""
        key = f"{self._prefix}{clock.mode.name}/{clock.step:012}_{self._writer}.tfevents"
        return TensorboardStep(self, key, clock.training_step)

    def write(self, key: str, pieces: list[Buffer]) -> None:
        """Write a file. A failure is logged once, and loses only the file."""
        try:
            sink = self._storage.create(key)
            try:
                sink.write(pieces)
                sink.commit()
            except BaseException:
                sink.abort()
                raise
        except Exception as error:  # noqa: BLE001 - it must not lose the saved step
            if not self._has_complained:
                self._has_complained = True
                get_logger().error("TensorBoard files could not be written: %s", error)


class TensorboardStep:
    """The values of one step for TensorBoard."""

    def __init__(self, export: TensorboardExport, key: str, step: int):
        self._export = export
        self._key = key
        self._step = step
        self._encoders: list[Callable[[], EncodedRecord]] = []

    def __bool__(self) -> bool:
        return bool(self._encoders)

    @staticmethod
    def has_histogram(array: Any) -> bool:
        """Return whether the array has a histogram: not if it is empty, booleans or text."""
        return bool(array.size) and array.dtype.kind in _HAS_HISTOGRAM

    def add_scalar(self, tag: str, value: float, wall_time: float) -> None:
        from smdebug.files.tensorboard import encode_scalar

        self._encoders.append(lambda: encode_scalar(tag, value, step=self._step, wall_time=wall_time))

    def add_histogram(self, tag: str, array: Any, wall_time: float) -> None:
        """Add a histogram. The array must not change until the step is written."""
        from smdebug.files.tensorboard import encode_histogram

        self._encoders.append(lambda: encode_histogram(tag, array, step=self._step, wall_time=wall_time))

    def write(self) -> None:
        pieces: list[Buffer] = []
        for encode in self._encoders:
            try:
                pieces += encode().pieces
            except (ValueError, TypeError) as error:
                get_logger().warning("A value is left out for TensorBoard: %s", error)
        self._encoders.clear()
        if pieces:
            self._export.write(self._key, pieces)
