"""Threads of the background writer that die, and interpreters that end."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from smdebug.saving.writing.background import BackgroundWriter
from smdebug.saving.writing.write_outcome import WriteOutcome
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from tests.saving.background_jobs import job_of, recorded, steps_in, submit
from tests.support.faulty_storage import FULL, FaultyStorage, failing


def kill(thread: threading.Thread) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def test_a_killed_thread_is_replaced():
    storage = MemoryStorage()
    writer = BackgroundWriter(storage)
    in_hand, go_on = threading.Event(), threading.Event()

    def write():
        in_hand.set()
        while not go_on.wait(0.001):
            pass

    writer.submit(job_of(0, write))
    submit(writer, 1, 2)
    in_hand.wait(60)
    (thread,) = writer._threads
    kill(thread)
    outcome = writer.close()
    go_on.set()
    assert outcome == WriteOutcome(2, (0,), 0, "SystemExit: ")
    assert steps_in(storage) == [1, 2]


@pytest.mark.parametrize(("concurrency", "steps", "threads"), [(1, 5, 1), (4, 6, 4), (4, 2, 2)])
def test_as_many_threads_write_as_the_storage_is_fast_with_and_there_are_steps(concurrency, steps, threads):
    writer = BackgroundWriter(FaultyStorage(concurrency=concurrency))
    go_on = threading.Event()
    for step in range(steps):
        writer.submit(job_of(step, lambda: go_on.wait(60)))
    assert len(writer._threads) == threads
    go_on.set()
    assert writer.drain()
    writer.submit(job_of(steps))
    assert len(writer._threads) == threads, "one that is idle does it"
    assert writer.close() == WriteOutcome(steps + 1, (), 0, None)


def test_a_thread_that_vanishes_silently_is_noticed():
    writer = BackgroundWriter(MemoryStorage())
    submit(writer, 1)
    writer.drain()
    dead = threading.Thread(target=int)
    dead.start()
    dead.join()
    with writer._changed:  # as if it had died between two lines of ours
        for step in (2, 3):
            writer._take_in(recorded(step).job(writer.storage))
        entry, _ = writer._next()
        writer._threads[dead] = entry
    outcome = writer.close()
    assert outcome.written == 2
    assert outcome.lost == (2,)
    assert "killed" in outcome.reason


def test_without_threads_the_steps_are_written_at_close(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    storage = FaultyStorage.at_call(3, failing())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    writer = BackgroundWriter(storage)
    assert submit(writer, 1, 2, 3) == [True] * 3
    assert writer.close() == WriteOutcome(2, (1,), 0, str(FULL))
    assert steps_in(storage) == [2, 3]


def run_script(script: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=60
    ).stdout


OPENING = """
import atexit, os, sys, threading, time
import numpy as np
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.background import BackgroundWriter
from smdebug.saving.writing.step_recording import StepRecording
from smdebug.storage import open_storage
writer = BackgroundWriter(open_storage(sys.argv[1]))
def submit(step):
    recording = StepRecording(step=step, worker="worker_0", mode=ModeKeys.TRAIN, mode_step=step)
    recording.write_tensor("x", np.zeros(100_000))
    return writer.submit(recording.job(writer.storage))
"""


def test_closing_at_the_end_of_the_interpreter_writes_everything(tmp_path):
    run_script(
        OPENING
        + """
atexit.register(writer.close)
atexit.register(lambda: submit(20))
for step in range(20):
    submit(step)
""",
        str(tmp_path),
    )
    assert steps_in(FolderStorage(tmp_path)) == list(range(21))


def test_an_interpreter_that_ends_without_close_does_not_hang(tmp_path):
    run_script(
        OPENING
        + """
writer = BackgroundWriter(open_storage(sys.argv[1]), patience=0.2)
writer.storage.create = lambda key: threading.Event().wait()
submit(1)
""",
        str(tmp_path),
    )
    assert steps_in(FolderStorage(tmp_path)) == []


def test_a_forked_child_is_silent_and_leaves_the_queue_to_its_parent(tmp_path):
    out = run_script(
        OPENING
        + """
create, gate = writer.storage.create, threading.Event()
writer.storage.create = lambda key: (gate.wait(), create(key))[1]
for step in range(5):
    submit(step)
with writer._changed:  # the worst moment: the lock is held
    child = os.fork()
if not child:
    ok = not submit(9) and writer.drain() and writer.close() == writer.outcome == (0, (), 0, None)
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
gate.set()
print(writer.close().written)
""",
        str(tmp_path),
    )
    assert out.splitlines()[-1] == "5"
    assert steps_in(FolderStorage(tmp_path)) == list(range(5))
