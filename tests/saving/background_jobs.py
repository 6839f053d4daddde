"""Steps for a background writer to write."""

from __future__ import annotations

import logging

import numpy as np

from smdebug.files.names import step_file
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.background import BackgroundWriter
from smdebug.saving.writing.step_recording import StepJob, StepRecording

QUICKLY = 0.5  # a patience in seconds: longer than a busy machine stalls a thread


def levels(log_records) -> list[str]:
    return [record.levelname for record in log_records if record.levelno > logging.INFO]


def recorded(step: int, *, size: int = 10) -> StepRecording:
    recording = StepRecording(step=step, worker="worker_0", mode=ModeKeys.TRAIN, mode_step=step)
    recording.write_tensor("x", np.full(size, step))
    return recording


def submit(writer: BackgroundWriter, *steps: int, size: int = 10) -> list[bool]:
    return [writer.submit(recorded(step, size=size).job(writer.storage)) for step in steps]


def steps_in(storage, prefix="index/") -> list[int]:
    return [step_file(key).step for key in storage.list(prefix)]


def job_of(step: int, write=lambda: None, commit=lambda: None, size: int = 0) -> StepJob:
    return StepJob(step, size, write, commit, lambda: None)
