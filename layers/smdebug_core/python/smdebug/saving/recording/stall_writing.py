"""Writes where this rank stands beside its run (`files.notes.stalls`), on the thread that found it."""

from __future__ import annotations

from dataclasses import replace

from smdebug.files.notes.stalls import ENDED, Stall, stall_key
from smdebug.saving.recording.recorder import Recorder
from smdebug.saving.recording.run_writer import RunWriter


def write_stall(recorder: Recorder, stall: Stall) -> None:
    """Write where this rank stands beside the run of its recorder, if that writes anything."""
    writer = _writer_of(recorder)
    if writer is not None:
        attempt = writer.attempt
        named = replace(stall, worker=writer.worker, run_id=attempt.run_id, training_run=attempt.training_run)
        writer.storage.write(stall_key(writer.worker), named.encode())


def end_earlier_stall(recorder: Recorder) -> None:
    """Note that what an earlier attempt has said is over: it was killed where this rank stood."""
    writer = _writer_of(recorder)
    if writer is not None and writer.storage.exists(stall_key(writer.worker)):
        write_stall(recorder, Stall("", ENDED, -1, "", 0.0, 0.0, 1.0))


def _writer_of(recorder: Recorder) -> RunWriter | None:
    run = recorder.run
    writer = None if run is None or not run.records else run.writer
    return None if writer is None or writer.failed else writer
