"""The background writer on a storage that fails or hangs."""

from __future__ import annotations

import logging
import queue
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from smdebug.files.names import step_file
from smdebug.saving.writing import background
from smdebug.saving.writing.background import BackgroundWriter
from smdebug.saving.writing.step_recording import StepJob
from smdebug.saving.writing.write_outcome import WriteOutcome
from smdebug.storage.memory import MemoryStorage
from tests.saving.background_jobs import QUICKLY, levels, recorded, steps_in, submit
from tests.support.faulty_storage import FULL, FaultyStorage, failing, tearing


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
def test_whichever_call_fails_the_other_steps_are_written(fault, number, log_records):
    storage = FaultyStorage.at_call(number, fault)
    writer = BackgroundWriter(storage)
    submit(writer, 0, 1, 2)
    outcome = writer.close()
    failed_at = step_file(storage.calls[number][1]).step
    assert outcome.lost == (failed_at,)
    assert outcome.written == 2
    assert outcome.reason
    assert steps_in(storage) == [step for step in range(3) if step != failed_at]
    assert levels(log_records).count("ERROR") == 1
    assert not writer.failed


def test_the_error_names_what_failed_and_what_was_lost(log_records):
    storage = FaultyStorage(lambda number, call, key: failing() if "0000003_" in key else None)
    writer = BackgroundWriter(storage)
    submit(writer, *range(5))
    assert writer.close() == WriteOutcome(4, (3,), 0, str(FULL))
    (error,) = [record.getMessage() for record in log_records if record.levelno == logging.ERROR]
    assert storage.location in error
    assert "the disk is full" in error
    assert "Lost: 1 (3)" in error


def test_of_many_lost_steps_ten_are_named(log_records):
    writer = BackgroundWriter(FaultyStorage(lambda number, call, key: failing()))
    submit(writer, *range(12))
    writer.close()
    last = [record.getMessage() for record in log_records if record.levelno == logging.ERROR][-1]
    assert "12 (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more)" in last


def test_an_outage_shorter_than_the_patience_loses_nothing(log_records):
    broken = threading.Event()
    broken.set()
    storage = FaultyStorage(lambda number, call, key: failing() if broken.is_set() else None)
    writer = BackgroundWriter(storage)
    submit(writer, 1, 2)
    writer.drain()
    broken.clear()
    assert submit(writer, 3, 4) == [True, True]
    assert writer.close() == WriteOutcome(2, (1, 2), 0, str(FULL))
    assert steps_in(storage) == [3, 4]


def test_a_storage_that_keeps_failing_is_given_up_and_reported_once(log_records):
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
    assert levels(log_records).count("ERROR") == 1
    assert len(levels(log_records)) == 3  # the first step that was lost, giving up, and the sum at the end
    assert len(failures) == 1
    assert failures[0].written == 2


@pytest.mark.parametrize(
    ("failing_steps", "is_given_up"), [({1, 3}, False), ({1, 2, 3}, True), ({2, 3}, False)]
)
def test_only_failures_without_a_success_between_them_use_up_the_patience(
    failing_steps, is_given_up, monkeypatch, log_records
):
    moment = [0.0]
    monkeypatch.setattr(background, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    failed = {f"{step:07}_" for step in failing_steps}
    storage = FaultyStorage(
        lambda number, call, key: failing() if any(name in key for name in failed) else None
    )
    writer = BackgroundWriter(storage, patience=30)
    for step in (1, 2, 3):
        submit(writer, step)
        assert writer.drain()
        moment[0] += 20
    assert writer.failed == is_given_up
    writer.close()


def test_a_step_is_aborted_after_either_half_failed_and_never_after_a_success():
    def fails() -> None:
        raise OSError("the disk is full")

    def succeeds() -> None:
        pass

    aborted: queue.SimpleQueue[int] = queue.SimpleQueue()
    halves = {1: (fails, succeeds), 2: (succeeds, fails), 3: (succeeds, succeeds)}
    writer = BackgroundWriter(MemoryStorage())
    for step, (write, commit) in halves.items():
        assert writer.submit(StepJob(step, 0, write, commit, partial(aborted.put, step)))
    assert {aborted.get(timeout=60), aborted.get(timeout=60)} == {1, 2}
    assert writer.close().written == 1
    assert aborted.empty()


def test_a_step_that_was_given_up_is_aborted_when_its_storage_answers_at_last():
    answer = threading.Event()
    aborted: queue.SimpleQueue[int] = queue.SimpleQueue()
    writer = BackgroundWriter(MemoryStorage(), patience=QUICKLY)
    job = StepJob(1, 0, partial(answer.wait, 60), lambda: None, partial(aborted.put, 1))
    assert writer.submit(job)
    assert writer.close().lost == (1,)
    assert aborted.empty()
    answer.set()
    assert aborted.get(timeout=60) == 1


def test_a_failing_callback_does_not_stop_the_writer():
    def complain(outcome):
        raise RuntimeError

    writer = BackgroundWriter(FaultyStorage.from_call(0, failing()), patience=0, on_failure=complain)
    submit(writer, 1, 2, 3)
    assert writer.close().written == 0


# Something hangs


@pytest.mark.parametrize("number", range(6))
def test_wherever_it_hangs_no_wait_exceeds_the_patience(number, blocking, log_records):
    storage = FaultyStorage.from_call(number, blocking)
    writer = BackgroundWriter(storage, patience=QUICKLY, max_jobs=3)
    taken = submit(writer, *range(50))
    assert taken[:3] == [True] * 3
    assert not taken[-1]
    outcome = writer.close()
    assert outcome.written == number // 4
    assert outcome.written + len(outcome.lost) + outcome.refused == 50
    assert "no progress" in outcome.reason
    assert levels(log_records).count("ERROR") == 1


def new_writers(before):
    """The threads that write, except those of other writers that end."""
    return [thread for thread in set(threading.enumerate()) - before if thread.name == "smdebug-writer"]


def test_a_process_that_stood_still_gives_nothing_up(blocking, monkeypatch):
    moment = [0.0]
    monkeypatch.setattr(background, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    begun = threading.Event()

    def stands_still() -> None:
        moment[0] += 1000.0
        begun.set()
        blocking()

    writer = BackgroundWriter(FaultyStorage.at_call(0, stands_still), patience=30)
    submit(writer, 0)
    assert begun.wait(60)
    submit(writer, 1)  # the first look at the clock
    blocking.release()
    assert writer.close() == WriteOutcome(2, (), 0, None)


def test_what_was_given_up_changes_nothing_when_it_goes_on(blocking):
    before = set(threading.enumerate())
    storage = FaultyStorage.at_call(0, blocking)  # the first step's event file
    writer = BackgroundWriter(storage, patience=QUICKLY)
    submit(writer, 0, 1)
    (hanging,) = new_writers(before)
    assert writer.close().lost == (0,)
    blocking.release()
    hanging.join()
    assert steps_in(storage) == [1]
    assert [key for key in storage.list("events/") if step_file(key).step == 0] == []


def test_a_step_that_is_given_up_in_its_last_call_counts_as_written_and_tells_its_job(blocking):
    before = set(threading.enumerate())
    storage = FaultyStorage(lambda number, call, key: blocking if key.startswith("index/") else None)
    writer = BackgroundWriter(storage, patience=QUICKLY)
    known: list[bool] = []
    job = recorded(0).job(writer.storage)

    def commit() -> None:
        job.commit()
        known.append(writer.is_given_up)

    writer.submit(job._replace(commit=commit))
    (hanging,) = new_writers(before)
    assert writer.close().lost == (0,)
    assert writer.was_lost(0)
    blocking.release()
    hanging.join()
    assert known == [True]
    assert not writer.is_given_up  # in this thread
    assert writer.outcome.lost == ()


def test_values_that_come_late_count_as_no_step_of_their_own():
    storage = FaultyStorage(lambda number, call, key: failing() if "000000000001_" in key else None)
    writer = BackgroundWriter(storage)
    submit(writer, 0)
    writer.submit(StepJob(0, 1, lambda: None, lambda: None, lambda: None, amends=True))
    submit(writer, 1)
    writer.submit(StepJob(1, 1, lambda: None, failing(), lambda: None, amends=True))
    assert writer.close()[:2] == (1, (1,))


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("hanging", ["events/000000000001", "index/000000000/000000000001"])
def test_one_call_that_hangs_costs_one_step(hanging, concurrency, blocking):
    storage = FaultyStorage(
        lambda number, call, key: blocking if key.startswith(hanging) and call != "create" else None,
        concurrency=concurrency,
    )
    writer = BackgroundWriter(storage, patience=QUICKLY)
    submit(writer, *range(5))
    outcome = writer.close()
    assert outcome.lost == (1,)
    assert outcome.written == 4
    assert steps_in(storage) == [0, 2, 3, 4]


def test_close_keeps_to_its_timeout_and_reports_unwritten_steps(blocking, log_records):
    storage = FaultyStorage(
        lambda number, call, key: blocking if key.startswith("events/000000000001") else None
    )
    writer = BackgroundWriter(storage)
    submit(writer, 0)
    writer.drain()
    submit(writer, 1, 2, 3)
    assert writer.close(timeout=0.05).lost == (1, 2, 3)
    assert levels(log_records).count("ERROR") == 1
    blocking.release()


def test_a_slow_storage_that_makes_progress_is_waited_for():
    pause = threading.Event()
    storage = FaultyStorage(lambda number, call, key: lambda: pause.wait(QUICKLY / 3))
    writer = BackgroundWriter(storage, patience=QUICKLY, max_jobs=1)
    assert submit(writer, *range(3)) == [True] * 3
    assert writer.close().written == 3
