"""Steps and TensorBoard files, written one by one."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from smdebug.compatibility.old_file import OldFile
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.files.event_writing import as_saved_array
from smdebug.files.framing import Checksum, EncodedRecord, frame
from smdebug.files.names import file_name_of
from smdebug.files.tensorboard import encode_graph, encode_histogram, encode_scalar
from smdebug.files.wire import delimited, varint
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.step_writer import StepWriter
from smdebug.storage import Sink, open_storage
from smdebug.storage.base import S3_SCHEME


class FileWriter(OldFile):
    """Writes one worker's files of one step: tensors ("events") or summaries ("tensorboard").

    Files appear on `close`. The step has the mode and mode step of the first tensor or shape. `max_queue`,
    `flush_secs` and `verbose` are accepted and have no effect.
    """

    def __init__(
        self,
        trial_dir: str,
        worker: str,
        step: int = 0,
        wtype: Literal["events", "tensorboard"] = "events",
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        max_queue: int = 10,
        flush_secs: int = 120,
        verbose: bool = False,
        write_checksum: bool = False,
    ):
        if wtype not in ("events", "tensorboard"):
            raise SMDebugValueError(f'wtype must be "events" or "tensorboard", not {wtype!r}')
        self.trial_dir = trial_dir
        self.worker = worker
        self.step = step
        self.mode = _checked_mode(mode)
        self._storage = open_storage(trial_dir)
        self._writes_tensors = wtype == "events"
        self._checksum: Checksum = "tfrecord" if write_checksum else "constant"
        self._writer: StepWriter | None = None
        self._board_key = f"{self.mode.name}/{step:012}_{file_name_of(worker)}.tfevents"
        self._board: Sink | None = None
        self._name = ""
        self._closed = False

    def name(self) -> str:
        """Return the path of the file; `SMDebugRuntimeError` before the first tensor or summary."""
        if not self._name:
            raise SMDebugRuntimeError(
                "This writer has no file yet: it begins with the first tensor or summary"
            )
        return self._name

    def write_tensor(
        self,
        tdata: Any,
        tname: str,
        write_index: bool = True,
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        timestamp: float | None = None,
    ) -> None:
        """Write a tensor. Without `write_index`, readers of the run do not find it."""
        mode = _checked_mode(mode)
        mode_step = self.step if mode_step is None else mode_step
        writer = self._step_writer(mode, mode_step)
        writer.write_tensor(tname, tdata, timestamp, mode, mode_step, indexed=write_index)
        self._name = _path_of(self.trial_dir, writer.event_key)

    def write_shape(
        self,
        name: str,
        shape: Sequence[int],
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        original_name: str | None = None,
    ) -> None:
        """Write the shape of a tensor."""
        mode_step = self.step if mode_step is None else mode_step
        self._step_writer(_checked_mode(mode), mode_step).write_shape(name, shape, original_name)

    def write_scalar_summary(
        self, name: str, value: float, global_step: int, timestamp: float | None = None
    ) -> None:
        """Write one point of a curve."""
        self._write_summary(encode_scalar(name, value, step=global_step, wall_time=_now_unless(timestamp)))

    def write_histogram_summary(
        self, tdata: Any, tname: str, global_step: int, bins: str = "default"
    ) -> None:
        """Write the distribution of a tensor's values, in TensorBoard's default buckets."""
        array = as_saved_array(tdata)
        self._write_summary(encode_histogram(tname, array, step=global_step, wall_time=time.time()))

    def write_summary(self, summ: Any, global_step: int, timestamp: float | None = None) -> None:
        """Write a `Summary` message, or the bytes of one."""
        message = summ if isinstance(summ, bytes) else summ.SerializeToString()
        step = b"\x10" + varint(global_step) if global_step else b""
        wall_time = b"\x09" + struct.pack("<d", _now_unless(timestamp))
        self._write_summary(frame(wall_time + step + delimited(b"\x2a", message), "tfrecord"))

    def write_graph(self, graph: Any) -> None:
        """Write a `GraphDef` message, or the bytes of one."""
        self._write_summary(encode_graph(graph, wall_time=time.time()))

    def close(self) -> None:
        """Make the event file visible, then the index file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            self._writer.commit()
        if self._board is not None:
            self._board.commit()

    def _step_writer(self, mode: ModeKeys, mode_step: int) -> StepWriter:
        if self._closed:
            raise SMDebugRuntimeError("This writer is closed: make a new FileWriter for the next step")
        if not self._writes_tensors:
            raise SMDebugRuntimeError('Tensors go to a writer made with wtype="events"')
        if self._writer is None:
            self._writer = StepWriter(
                self._storage,
                step=self.step,
                worker=self.worker,
                mode=mode,
                mode_step=mode_step,
                checksum=self._checksum,
            )
        return self._writer

    def _write_summary(self, record: EncodedRecord) -> None:
        if self._writes_tensors:
            writer = self._step_writer(self.mode, self.step)
            writer.write_record(record)
            self._name = _path_of(self.trial_dir, writer.event_key)
            return
        if self._closed:
            raise SMDebugRuntimeError("This writer is closed: make a new FileWriter for the next step")
        if self._board is None:
            self._board = self._storage.create(self._board_key)
            self._name = _path_of(self.trial_dir, self._board_key)
        self._board.write(record.pieces)


def _path_of(trial_dir: str, key: str) -> str:
    if trial_dir.startswith(S3_SCHEME):
        return f"{trial_dir.rstrip('/')}/{key}"
    return str(Path(os.path.expanduser(trial_dir)) / key)  # noqa: PTH111 - `.` at the beginning stays


def _now_unless(timestamp: float | None) -> float:
    return time.time() if timestamp is None else timestamp


def _checked_mode(mode: ModeKeys | None) -> ModeKeys:
    if mode is None:
        return ModeKeys.GLOBAL
    if not isinstance(mode, ModeKeys):
        raise SMDebugValueError(f"{mode!r} is not a mode: use one of smdebug.modes, as modes.TRAIN")
    return mode
