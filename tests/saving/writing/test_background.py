"""The background writer, while all goes well."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugTypeError
from smdebug.files.index import parse_index
from smdebug.files.names import event_key, index_key
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing import background
from smdebug.saving.writing.background import BackgroundWriter
from smdebug.saving.writing.step_recording import StepRecording
from smdebug.saving.writing.watched_storage import WatchedStorage
from smdebug.saving.writing.write_outcome import WriteOutcome
from smdebug.storage.base import Storage
from smdebug.storage.memory import MemoryStorage
from tests.saving.background_jobs import job_of, levels, recorded, steps_in, submit
from tests.support.faulty_storage import FaultyStorage


def test_what_is_submitted_is_there_after_close():
    storage = MemoryStorage()
    writer = BackgroundWriter(storage)
    assert submit(writer, *range(20)) == [True] * 20
    assert writer.close() == WriteOutcome(20, (), 0, None)
    assert steps_in(storage) == list(range(20))
    assert writer.last_committed == 19
    assert not writer.failed
    index = parse_index(storage.read(index_key(7, "worker_0")), file="")
    assert index.meta.event_file_name == event_key(7, "worker_0")


def test_the_storage_that_jobs_use_is_a_storage():
    storage = BackgroundWriter(MemoryStorage("mine")).storage
    assert isinstance(storage, Storage)
    assert storage.location == "memory://mine"


def test_each_call_that_may_take_long_is_noted_as_progress():
    noted: list[int] = []
    storage = WatchedStorage(MemoryStorage("run"), lambda: noted.append(storage.bytes_written))
    sink = storage.create("events/a")
    sink.write([b"abc", b"de"])
    sink.commit()
    storage.write("index/a", b"f")
    assert noted == [0, 5, 5, 6]


def test_threads_start_with_the_first_step_and_end_with_close():
    writer = BackgroundWriter(MemoryStorage())
    before = set(threading.enumerate())  # other tests may have left some
    submit(writer, 1)
    (thread,) = set(threading.enumerate()) - before
    assert (thread.name, thread.daemon) == ("smdebug-writer", True)
    writer.close()
    thread.join(60)
    assert not thread.is_alive()


def test_drain_waits_and_the_writer_continues():
    storage = MemoryStorage()
    writer = BackgroundWriter(storage)
    assert writer.drain()
    submit(writer, 1, 2)
    assert writer.drain()
    assert steps_in(storage) == [1, 2]
    assert submit(writer, 3) == [True]
    writer.close()
    assert steps_in(storage) == [1, 2, 3]


def test_nothing_is_begun_while_the_training_measures_a_step(monkeypatch):
    monkeypatch.setattr(background, "_PAUSE", 60.0)
    writer = BackgroundWriter(MemoryStorage())
    is_measuring, begun_while_measuring = True, []
    writer.pause()
    writer.submit(job_of(1, lambda: begun_while_measuring.append(is_measuring)))
    time.sleep(0.1)  # a thread that did not wait would have begun
    is_measuring = False
    writer.resume()
    writer.close()
    assert begun_while_measuring == [False]


def test_closing_does_not_wait_for_the_end_of_a_pause(monkeypatch):
    monkeypatch.setattr(background, "_PAUSE", 60.0)
    writer = BackgroundWriter(MemoryStorage(), patience=30.0)
    writer.pause()
    submit(writer, 1)
    assert writer.close() == WriteOutcome(1, (), 0, None)


@pytest.mark.parametrize(("interval", "pauses"), [(3, {0, 3, 6}), (1, set())])
def test_a_hook_pauses_it_in_saved_steps_that_are_followed_by_others(interval, pauses):
    hook = smdebug.Hook(MemoryStorage(), save_config=smdebug.SaveConfig(save_interval=interval))
    paused = set()
    for step in range(8):
        with hook.step():
            hook.record("loss", 1.0)
            if not hook.recorder.run.writer.background._may_begin.is_set():
                paused.add(step)
    hook.close()
    assert paused == pauses


def test_closing_twice_changes_nothing_and_a_closed_writer_accepts_nothing(log_records):
    writer = BackgroundWriter(MemoryStorage())
    submit(writer, 1)
    assert writer.close() == writer.close() == WriteOutcome(1, (), 0, None)
    assert submit(writer, 2) == [False]
    assert BackgroundWriter(MemoryStorage()).close() == WriteOutcome(0, (), 0, None)
    assert levels(log_records) == []


def test_index_files_are_written_in_the_order_of_submission_whatever_is_ready_first():
    storage = FaultyStorage(concurrency=4)
    writer = BackgroundWriter(storage)
    others_are_written = threading.Event()
    written, committed = [], []

    def write(step):
        if step == 0:
            others_are_written.wait(60)
        written.append(step)
        if len(written) == 3:
            others_are_written.set()

    for step in range(4):
        writer.submit(job_of(step, lambda step=step: write(step), lambda step=step: committed.append(step)))
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


def test_a_name_that_cannot_be_saved_costs_its_tensor_and_not_the_step(log_records):
    storage = MemoryStorage()
    recording = recorded(1)
    recording.write_tensor("a\0b", np.zeros(2))
    recording.write_tensor("y", np.zeros(2))
    writer = BackgroundWriter(storage)
    writer.submit(recording.job(writer.storage))
    assert writer.close().written == 1
    assert parse_index(storage.read(index_key(1, "worker_0")), file="").names == ("x", "y")
    assert levels(log_records) == ["WARNING"]
