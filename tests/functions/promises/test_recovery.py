"""What is lost or interrupted is recovered."""

from __future__ import annotations

import json
from datetime import datetime
from threading import Barrier
from typing import Any

import pytest

from functions.arrivals.missed_files import UNKNOWN
from functions.arrivals.recording import record_arrivals
from functions.decisions.messages import Reminder, arrivals_in
from functions.evaluation.built_in import evaluate
from functions.lifecycle.upkeep import go_on, pass_on
from functions.ports import TooMuch
from functions.run_record import in_trouble
from smdebug.exceptions import StorageUnavailable
from smdebug.files.names import END_MARKER
from smdebug.service.step_index.items import RUN as RUN_ITEM
from smdebug.service.step_index.items import run_pk
from tests.functions.deployed_settings import settings as stack_settings
from tests.functions.promises.runs import EXPLODING, RUN, cursor, found_steps, report_every_step
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld


def test_what_was_not_published_is_published_by_the_next_evaluation(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.deliver()
    evaluate(small.world, RUN, "builtin", 0)  # and then the workflow dies
    small.workflow.started.clear()
    assert found_steps(small) == []
    small.pass_time(400)
    assert found_steps(small) == [0]
    assert small.index.groups.get(RUN, "builtin").outbox == {}


def test_a_start_that_got_lost_is_made_up_for_by_the_check(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.deliver()
    small.workflow.started.clear()
    small.pass_time(400)
    assert found_steps(small) == [0]


def test_at_most_one_check_waits_for_a_run(small):
    worker = Saver(small.place()).begin()
    for step in range(20):
        worker.save(step)
        small.settle()
    assert len(small.checks.waiting) == 1


def test_urgent_messages_do_not_wait_for_a_later_check(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.deliver()
    evaluate(small.world, RUN, "builtin", 0)
    small.workflow.started.clear()
    small.checks.leave({"check": RUN}, after_seconds=1)
    small.pass_time(2)
    assert found_steps(small) == []
    pass_on(small.world, Reminder(RUN, at_once=True), "urgent")
    small.execute()
    assert found_steps(small) == [0]
    assert len(small.checks.waiting) == 1


def test_an_execution_without_time_is_continued_unless_another_one_holds_the_group(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.deliver()
    small.workflow.started.clear()
    (left,) = arrivals_in(json.dumps({"continue": RUN, "group": "builtin"}))
    held = small.index.groups.lease(RUN, "builtin", now=small.clock.now(), seconds=130)
    go_on(small.world, left, "first")
    assert not small.workflow.started  # the holder goes on by itself
    small.clock.time += 131  # it has died
    go_on(small.world, left, "second")
    (request,) = small.workflow.started.values()
    assert [group["group"] for group in request["groups"]] == [held.group]
    small.execute()
    assert found_steps(small) == [0]


def test_an_execution_has_until_long_before_the_workflow_times_out(small):
    worker = Saver(small.place()).begin()
    worker.save(0)
    small.deliver()
    (request,) = small.workflow.started.values()
    until = datetime.fromisoformat(request["until"]).timestamp()
    assert until == int(small.clock.now() + small.world.settings.execution)


def test_a_finish_without_time_is_continued_without_evaluating_again(small):
    worker = Saver(small.place()).begin()
    worker.save(0)
    worker.end()
    small.deliver()
    small.workflow.started.clear()
    (left,) = arrivals_in(json.dumps({"continue": RUN}))
    go_on(small.world, left, "first")
    (request,) = small.workflow.started.values()
    assert request["groups"] == []
    assert request["finish"] is True


def test_a_notification_that_got_lost_is_found_by_the_sweeper(small):
    worker = Saver(small.place()).begin()
    small.settle()
    worker.save(0, FAILING)
    small.bucket.hold_back()
    small.clock.time += 300
    assert small.sweep() == 2
    assert found_steps(small) == [0]
    assert small.sweep() == 0


def test_files_of_a_step_that_was_given_up_are_found_while_the_run_continues(small):
    """The sweeps that should have found them in time had failed."""
    worker = Saver(small.place()).begin()
    small.settle()
    for step in range(3):
        worker.save(step, FAILING)
    small.bucket.hold_back("events/000000000000/")
    small.settle()
    small.clock.time += 901
    worker.save(3, FAILING)
    small.settle()
    assert cursor(small) == 3
    assert found_steps(small) == [1]
    assert small.sweep() == 1
    group = small.index.groups.get(RUN, "builtin")
    assert (group.evaluated, group.not_evaluated, group.late_done) == (4, 0, {0})


def test_runs_are_swept_at_once_and_one_that_fails_holds_up_no_other(small):
    """Each waits in the table until all others are there, too: one after the other would never end."""
    names = [f"run-{number}" for number in range(small.settings.swept_at_once)]
    for name in names:
        Saver(small.place(name)).begin().save(0, FAILING)
        small.settle()
        small.bucket.hold_back()
    together, read = Barrier(len(names), timeout=60), small.index.run

    def run_together(run):
        if run not in met:
            met.add(run)
            together.wait()
            if run == "runs/run-3":
                raise StorageUnavailable("s3://runs", "of this run alone")
        return read(run)

    met: set[str] = set()
    for name in names:
        Saver(small.place(name)).begin().save(1, FAILING)
    small.bucket.hold_back()
    small.clock.time += 300
    small.index.run = run_together
    missed = small.sweep()
    small.index.run = read
    assert met == {f"runs/{name}" for name in names}
    assert missed >= 2 * (len(names) - 1)
    unseen = small.index.step("runs/run-3", 0, 1)
    assert unseen is None


def test_a_run_that_cannot_be_swept_counts_as_waiting_and_the_others_are_swept(small, capsys):
    """Its record is damaged permanently, so the age of its steps is unknown."""
    for name in ("damaged", "healthy"):
        Saver(small.place(name)).begin().save(0, HEALTHY)
        small.settle()
    small.items.update(run_pk("runs/damaged"), RUN_ITEM, set={"state": "no such state"})
    Saver(small.place("healthy")).save(1, HEALTHY)
    small.bucket.hold_back()
    small.clock.time += 300
    capsys.readouterr()
    assert small.sweep() == 2
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "RunsNotSwept" in line]
    measured = json.loads(line)
    assert measured["RunsNotSwept"] == [1]
    assert measured["OldestUnevaluatedStep"] == [UNKNOWN]


def test_steps_that_never_come_are_listed_more_and_more_rarely(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.settle()
    small.bucket.hold_back()
    worker.save(1, HEALTHY)
    for key in (
        "events/000000000001/000000000001_worker_0.tfevents",
        "index/000000000/000000000001_worker_0.json",
    ):
        small.place().delete(key)
    small.bucket.hold_back()
    listed, listing = [], small.bucket.list

    def counted(bucket, prefix, after=None):
        if "000000000001" in prefix:
            listed.append(small.clock.now())
        return listing(bucket, prefix, after)

    small.bucket.list = counted
    for step in range(2, 300):  # a day in which the training continues
        worker.save(step, HEALTHY)
        small.settle()
        small.clock.time += 300
        small.sweep()
    assert small.index.groups.get(RUN, "builtin").lost == {1}
    assert 2 <= len(listed) <= 60


def test_a_backlog_is_worked_off_in_parts_with_the_same_result():
    small = SmallWorld(stack_settings(default_rules=("ExplodingTensor",), longest_backlog=7))
    report_every_step(small)
    worker = Saver(small.place()).begin()
    for step in range(30):
        worker.save(step, FAILING if step % 10 == 3 else HEALTHY)
    small.settle()
    assert found_steps(small) == [3, 13, 23]
    assert cursor(small) == 29


def test_what_cannot_be_read_for_a_moment_is_not_taken_as_unreadable(small):
    worker = Saver(small.place()).begin()
    (message,) = small.bucket.hold_back()
    read, small.bucket.read = small.bucket.read, unavailable
    with pytest.raises(StorageUnavailable):
        record_arrivals(small.world, RUN, arrivals_in(message))
    small.bucket.read = read
    small.bucket.release([message])
    worker.save(0, FAILING)
    small.settle()
    assert found_steps(small) == [0]


def collections_that_come_last() -> tuple[SmallWorld, str]:
    """A stack whose run has saved a failing step and ended, and S3's notification of its collections file."""
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    (message,) = small.bucket.hold_back()
    worker.save(0, FAILING)
    small.place().write(END_MARKER, b"")
    small.settle()
    small.pass_time(1300)
    return small, message


def cannot_start(small: SmallWorld, message: str) -> None:
    """Record the file in a process that dies before it starts the evaluation."""
    start, small.workflow.start = small.workflow.start, dies
    with pytest.raises(TooMuch):
        record_arrivals(small.world, RUN, arrivals_in(message))
    small.workflow.start = start


def test_a_repeated_notification_starts_steps_after_a_crash():
    small, message = collections_that_come_last()
    cannot_start(small, message)
    small.bucket.release([message])
    small.settle()
    assert found_steps(small) == [0]


def test_collections_recorded_by_a_process_that_died_are_followed_by_a_check():
    small, message = collections_that_come_last()
    cannot_start(small, message)
    small.pass_time(400)
    assert found_steps(small) == [0]


def unavailable(*_: object) -> bytes:
    raise StorageUnavailable("s3://runs/mnist", "not now")


def test_a_run_is_finished_even_if_the_process_that_recorded_its_end_died(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.place().write(END_MARKER, b"")
    small.settle()
    small.checks.waiting = [item for item in small.checks.waiting if "finish" in item[1]]
    waiting = list(small.checks.waiting)
    start, small.workflow.start = small.workflow.start, dies
    with pytest.raises(TooMuch):
        small.pass_time(2000)
    small.workflow.start = start
    small.checks.waiting = waiting  # the service repeats it
    small.pass_time(2000)
    assert small.index.run(RUN).state.value == "Finished"


def dies(*_: object) -> None:
    raise TooMuch("the function was killed")


def test_a_table_that_asks_to_slow_down_is_not_a_fault_of_the_rule():
    small = SmallWorld(stack_settings(default_rules=("UnchangedTensor",)))
    small.place().write(
        "rules.json",
        b'[{"RuleConfigurationName": "same", "RuleParameters": {"rule_to_invoke": "UnchangedTensor",'
        b' "tensor_regex": "gradient", "num_steps": "2"}}]',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.settle()
    small.world.kept_views.clear()  # another process looks at the next step, and has to look back
    worker.save(1, HEALTHY)
    small.deliver()
    (request,) = small.workflow.started.values()
    query = small.items.query

    def busy(pk: str, **how: Any) -> Any:
        if how.get("newest_first"):
            raise TooMuch("slow down")
        return query(pk, **how)

    small.items.query = busy  # type: ignore[method-assign]
    with pytest.raises(TooMuch):
        evaluate(small.world, RUN, "builtin", request["step"])
    small.items.query = query  # type: ignore[method-assign]
    small.clock.time += 200
    small.settle()
    assert small.statuses() == {"same": "IssuesFound"}


def test_a_check_starts_nothing_for_a_step_that_others_still_write(small):
    Saver(small.place(), num_workers=2).begin().save(0, HEALTHY)
    small.settle()
    small.pass_time(small.settings.check_delay - 1)
    start, started = small.workflow.start, []
    small.workflow.start = lambda name, request: (started.append(request), start(name, request))
    small.pass_time(2)
    assert not started
    assert 895 <= min(after for after, _ in small.checks.waiting) <= 900, "it is looked at again"


def test_a_page_of_steps_of_which_none_is_complete_ends_the_walk():
    small = SmallWorld(stack_settings(default_rules=("ExplodingTensor",), longest_backlog=3, longest_gap=6))
    workers = [Saver(small.place(), name, num_workers=2).begin() for name in ("worker_0", "worker_1")]
    for step in range(20):
        workers[0].save(step, HEALTHY)
    small.settle()
    evaluate(small.world, RUN, "builtin", 19)
    assert cursor(small) == -1
    for step in range(20):
        workers[1].save(step, FAILING if step == 7 else HEALTHY)
    small.settle()
    assert (cursor(small), found_steps(small)) == (19, [7])


def test_what_is_no_longer_wrong_is_no_news(small):
    Saver(small.place()).begin()
    small.settle()
    record = in_trouble(small.world, small.index.run(RUN), "files", "two are missing")
    news = set(record.outbox)
    assert len(news) == 1
    record = in_trouble(small.world, record, "files", "")
    assert (record.trouble, set(record.outbox)) == ("", news)
