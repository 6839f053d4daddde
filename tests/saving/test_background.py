from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from smdebug.exceptions import SMDebugTypeError
from smdebug.files.index import parse_index
from smdebug.files.names import event_key, index_key, step_file
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving.background import BackgroundWriter
from smdebug.saving.step_recording import StepJob, StepRecording
from smdebug.saving.write_outcome import Outcome
from smdebug.storage.base import Storage
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from tests.support.faulty_storage import FULL, Blocking, FaultyStorage, failing, tearing

QUICKLY = 0.5  # a patience in seconds: longer than a busy machine stalls a thread


@pytest.fixture
def said():
    """What the library's logger says."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    get_logger().addHandler(handler)
    yield records
    get_logger().removeHandler(handler)


@pytest.fixture
def blocking():
    """A fault that hangs; whatever still hangs is let go at the end."""
    fault = Blocking()
    yield fault
    fault.release()


def levels(said) -> list[str]:
    return [record.levelname for record in said if record.levelno > logging.INFO]


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


# All is well


def test_what_is_submitted_is_there_after_close():
    storage = MemoryStorage()
    writer = BackgroundWriter(storage)
    assert submit(writer, *range(20)) == [True] * 20
    assert writer.close() == Outcome(20, (), 0, None)
    assert steps_in(storage) == list(range(20))
    assert writer.last_committed == 19
    assert not writer.failed
    index = parse_index(storage.read(index_key(7, "worker_0")), file="")
    assert index.meta.event_file_name == event_key(7, "worker_0")


def test_the_storage_that_jobs_use_is_a_storage():
    storage = BackgroundWriter(MemoryStorage("mine")).storage
    assert isinstance(storage, Storage)
    assert storage.location == "memory://mine"


def test_threads_start_with_the_first_step_and_end_with_close():
    writer = BackgroundWriter(MemoryStorage())
    before = threading.active_count()
    submit(writer, 1)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "smdebug-writer"]
    assert thread.daemon
    writer.close()
    thread.join(5)
    assert threading.active_count() == before


def test_drain_waits_and_goes_on():
    storage = MemoryStorage()
    writer = BackgroundWriter(storage)
    assert writer.drain()
    submit(writer, 1, 2)
    assert writer.drain()
    assert steps_in(storage) == [1, 2]
    assert submit(writer, 3) == [True]
    writer.close()
    assert steps_in(storage) == [1, 2, 3]


def test_closing_twice_changes_nothing_and_afterwards_nothing_is_taken(said):
    writer = BackgroundWriter(MemoryStorage())
    submit(writer, 1)
    assert writer.close() == writer.close() == Outcome(1, (), 0, None)
    assert submit(writer, 2) == [False]
    assert BackgroundWriter(MemoryStorage()).close() == Outcome(0, (), 0, None)
    assert levels(said) == []


def test_index_files_come_in_the_order_of_submission_whatever_is_ready_first():
    storage = FaultyStorage(concurrency=4)
    writer = BackgroundWriter(storage)
    others_are_written = threading.Event()
    written, committed = [], []

    def write(step):
        if step == 0:
            others_are_written.wait(10)
        written.append(step)
        if len(written) == 3:
            others_are_written.set()

    for step in range(4):
        writer.submit(
            job_of(step, lambda step=step: write(step), lambda step=step: committed.append(step))
        )
    writer.close()
    assert written[-1] == 0
    assert committed == [0, 1, 2, 3]


def test_a_full_queue_waits_for_room():
    storage = FaultyStorage()
    gate = threading.Semaphore(0)
    writer = BackgroundWriter(storage, max_jobs=2)
    in_queue = []

    def write():
        gate.acquire()
        in_queue.append(len(writer._order))

    threading.Thread(target=lambda: [gate.release() for _ in range(10)]).start()
    for step in range(10):
        assert writer.submit(job_of(step, write))
    assert writer.close().written == 10
    assert max(in_queue) <= 2


def test_the_queue_is_bounded_by_bytes_and_a_huge_step_goes_alone():
    storage = FaultyStorage()
    writer = BackgroundWriter(storage, max_bytes=1000)
    held = []
    for step in range(10):
        writer.submit(job_of(step, lambda: held.append(writer._bytes), size=400))
    writer.submit(job_of(10, lambda: held.append(writer._bytes), size=10**9))
    writer.submit(job_of(11, lambda: held.append(writer._bytes), size=400))
    assert writer.close().written == 12
    assert max(held[:10]) <= 800
    assert held[10:] == [10**9, 400]


def test_a_recording_is_a_copy_and_knows_its_size():
    storage = MemoryStorage()
    array = np.zeros(1000)
    recording = StepRecording(step=1, worker="worker_0", mode=ModeKeys.EVAL, mode_step=0)
    recording.write_tensor("copied", array, wall_time=1.0)
    recording.write_tensor("owned", array, owned=True)
    recording.write_shape("shape", (1, 2))
    array[:] = 5
    assert recording.size >= 2 * array.nbytes
    writer = BackgroundWriter(storage)
    writer.submit(recording.job(writer.storage))
    writer.close()
    from smdebug.files.event_reading import iterate_records

    copied, owned = iterate_records(storage.read(event_key(1, "worker_0")), file="")
    assert (copied.value[0], owned.value[0]) == (0, 5)
    assert (copied.wall_time, copied.mode) == (1.0, ModeKeys.EVAL)


def test_what_cannot_be_saved_is_refused_when_it_is_recorded():
    with pytest.raises(SMDebugTypeError):
        recorded(1).write_tensor("x", np.zeros(2, "datetime64[s]"))


def test_a_name_that_cannot_be_saved_costs_its_tensor_and_not_the_step(said):
    storage = MemoryStorage()
    recording = recorded(1)
    recording.write_tensor("a\0b", np.zeros(2))
    recording.write_tensor("y", np.zeros(2))
    writer = BackgroundWriter(storage)
    writer.submit(recording.job(writer.storage))
    assert writer.close().written == 1
    assert parse_index(storage.read(index_key(1, "worker_0")), file="").names == ("x", "y")
    assert levels(said) == ["WARNING"]


# Something fails


@pytest.mark.parametrize(
    "fault",
    [
        failing(),
        failing(ValueError("odd")),
        failing(MemoryError()),
        failing(SystemExit()),
        failing(KeyboardInterrupt()),
        failing(GeneratorExit()),
        tearing,
    ],
)
@pytest.mark.parametrize("number", range(12))
def test_whichever_call_fails_the_other_steps_are_written(fault, number, said):
    storage = FaultyStorage.at_call(number, fault)
    writer = BackgroundWriter(storage)
    submit(writer, 0, 1, 2)
    outcome = writer.close()
    failed_at = step_file(storage.calls[number][1]).step
    assert outcome.lost == (failed_at,)
    assert outcome.written == 2
    assert outcome.reason
    assert steps_in(storage) == [step for step in range(3) if step != failed_at]
    assert levels(said).count("ERROR") == 1
    assert not writer.failed


def test_the_error_names_what_failed_and_what_was_lost(said):
    storage = FaultyStorage(lambda number, call, key: failing() if "0000003_" in key else None)
    writer = BackgroundWriter(storage)
    submit(writer, *range(5))
    assert writer.close() == Outcome(4, (3,), 0, str(FULL))
    (error,) = [record.getMessage() for record in said if record.levelno == logging.ERROR]
    assert storage.location in error
    assert "the disk is full" in error
    assert "Lost: 1 (3)" in error


def test_an_outage_shorter_than_the_patience_is_survived(said):
    broken = threading.Event()
    broken.set()
    storage = FaultyStorage(lambda number, call, key: failing() if broken.is_set() else None)
    writer = BackgroundWriter(storage)
    submit(writer, 1, 2)
    writer.drain()
    broken.clear()
    assert submit(writer, 3, 4) == [True, True]
    assert writer.close() == Outcome(2, (1, 2), 0, str(FULL))
    assert steps_in(storage) == [3, 4]


def test_a_storage_that_keeps_failing_is_given_up_once_and_loudly(said):
    failures = []
    storage = FaultyStorage.from_call(8, failing())
    writer = BackgroundWriter(storage, patience=QUICKLY, on_failure=failures.append)
    step = 0
    while submit(writer, step) == [True]:
        step += 1
        writer.drain()
    assert writer.failed
    assert submit(writer, *range(1000, 2000)) == [False] * 1000
    outcome = writer.close()
    assert outcome.written == 2
    assert outcome.lost == tuple(range(2, step))
    assert outcome.refused == 1001
    assert levels(said).count("ERROR") == 1
    assert len(levels(said)) == 3  # the first step that was lost, giving up, and the sum at the end
    assert len(failures) == 1
    assert failures[0].written == 2


def test_a_callback_that_fails_is_nobodys_problem():
    def complain(outcome):
        raise RuntimeError

    writer = BackgroundWriter(
        FaultyStorage.from_call(0, failing()), patience=0, on_failure=complain
    )
    submit(writer, 1, 2, 3)
    assert writer.close().written == 0


# Something hangs


@pytest.mark.parametrize("number", range(6))
def test_wherever_it_hangs_nobody_waits_longer_than_the_patience(number, blocking, said):
    storage = FaultyStorage.from_call(number, blocking)
    writer = BackgroundWriter(storage, patience=QUICKLY, max_jobs=3)
    taken = submit(writer, *range(50))
    assert taken[:3] == [True] * 3
    assert not taken[-1]
    outcome = writer.close()
    assert outcome.written == number // 4
    assert outcome.written + len(outcome.lost) + outcome.refused == 50
    assert "nothing has moved" in outcome.reason
    assert levels(said).count("ERROR") == 1


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("hanging", ["events/000000000001", "index/000000000/000000000001"])
def test_one_call_that_hangs_costs_one_step(hanging, concurrency, blocking):
    storage = FaultyStorage(
        lambda number, call, key: (
            blocking if key.startswith(hanging) and call != "create" else None
        ),
        concurrency=concurrency,
    )
    writer = BackgroundWriter(storage, patience=QUICKLY)
    submit(writer, *range(5))
    outcome = writer.close()
    assert outcome.lost == (1,)
    assert outcome.written == 4
    assert steps_in(storage) == [0, 2, 3, 4]


def test_close_keeps_to_its_timeout_and_says_what_it_left(blocking, said):
    storage = FaultyStorage(
        lambda number, call, key: blocking if key.startswith("events/000000000001") else None
    )
    writer = BackgroundWriter(storage)
    submit(writer, 0)
    writer.drain()
    submit(writer, 1, 2, 3)
    assert writer.close(timeout=0.05).lost == (1, 2, 3)
    assert levels(said).count("ERROR") == 1
    blocking.release()


def test_a_slow_storage_that_moves_is_waited_for():
    pause = threading.Event()
    storage = FaultyStorage(lambda number, call, key: lambda: pause.wait(QUICKLY / 3))
    writer = BackgroundWriter(storage, patience=QUICKLY, max_jobs=1)
    assert submit(writer, *range(3)) == [True] * 3
    assert writer.close().written == 3


# Threads


def kill(thread: threading.Thread) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )


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
    in_hand.wait(10)
    (thread,) = writer._threads
    kill(thread)
    outcome = writer.close()
    go_on.set()
    assert outcome == Outcome(2, (0,), 0, "SystemExit: ")
    assert steps_in(storage) == [1, 2]


def test_a_thread_that_vanishes_without_a_word_is_noticed():
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
    assert writer.close() == Outcome(2, (1,), 0, str(FULL))
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
from smdebug.saving.background import BackgroundWriter
from smdebug.saving.step_recording import StepRecording
from smdebug.storage import open_storage
writer = BackgroundWriter(open_storage(sys.argv[1]), patience=0.2)
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
writer = BackgroundWriter(open_storage(sys.argv[1]))  # patient: forking may take long
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
