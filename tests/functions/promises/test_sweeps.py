"""What the sweeper repeats, what it keeps, and where it begins."""

from __future__ import annotations

from functions.arrivals.missed_files import sweep
from smdebug.files.names import END_MARKER
from smdebug.service.step_index import items
from tests.functions.promises.runs import RUN
from tests.functions.saver import HEALTHY, Saver


def expiring(small):
    """Which of the run's own items the table may delete."""
    found = small.items.query(items.run_pk(RUN))
    once = [item for item in found if item["sk"] in (items.RUN, items.RULES, items.COLLECTIONS)]
    once += [item for item in found if item["sk"].startswith(items.GROUP_PREFIX)]
    assert len(once) >= 4
    return [item["sk"] for item in once if "expires" in item]


def listed(small):
    return [watched.run for watched in small.index.watched_runs()]


def finished(small):
    """Let a run finish; return its worker."""
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    worker.end()
    small.settle()
    small.pass_time(400)
    assert small.index.run(RUN).state.value == "Finished"
    return worker


def test_a_finished_run_is_taken_off_the_list_and_expires(small):
    finished(small)
    assert listed(small) == [RUN]
    small.sweep()
    assert listed(small) == []
    assert len(expiring(small)) >= 4


def test_a_run_that_is_listed_again_meanwhile_is_kept(small):
    finished(small)
    let_expire = small.index.let_expire

    def listed_again_meanwhile(record):
        let_expire(record)
        assert expiring(small)
        small.index.list_run(RUN, small.clock.now())

    small.index.let_expire = listed_again_meanwhile
    small.sweep()
    assert listed(small) == [RUN]
    assert expiring(small) == []
    small.index.let_expire = let_expire
    small.sweep()
    assert listed(small) == []
    assert len(expiring(small)) >= 4


def test_a_run_that_goes_on_is_kept_even_if_the_process_that_noted_it_died(small):
    finished(small)
    small.index.let_expire(small.index.run(RUN))
    Saver(small.place(), training_run=1).begin()
    small.index.keep, keep = lambda record: None, small.index.keep
    small.settle()
    assert small.index.run(RUN).state.value == "Running"
    assert expiring(small)
    small.index.keep = keep
    small.sweep()
    assert expiring(small) == []


def test_a_finish_that_was_lost_is_asked_for_again_once_it_is_overdue(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.place().write(END_MARKER, b"")  # without a closing note
    small.settle()
    assert small.index.run(RUN).state.value == "Ending"
    ended = small.index.run(RUN).ended_at
    due = ended + small.world.settings.end_grace

    def waiting_at(now):
        small.checks.waiting.clear()
        small.clock.time = now
        sweep(small.world)
        return [message for _, message in small.checks.waiting if "finish" in message]

    assert waiting_at(due - 1) == []
    assert waiting_at(due + 900) == []
    assert waiting_at(due + 901) == [{"finish": RUN}]
    small.pass_time(10)
    assert small.index.run(RUN).state.value == "Finished"
    assert waiting_at(due + 2000) == []


def test_a_check_that_was_lost_is_asked_for_again_once_it_is_overdue(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.settle()
    due = small.index.run(RUN).check_until
    assert due > 0

    def waiting_at(now):
        small.checks.waiting.clear()
        small.clock.time = now
        sweep(small.world)
        return [message for _, message in small.checks.waiting]

    assert waiting_at(due + 900) == []
    assert waiting_at(due + 901) == [{"check": RUN}]


def test_a_sweep_without_time_for_all_runs_leaves_the_others_to_the_next_ones(small):
    names = [f"runs/run-{number}" for number in range(7)]
    for name in names:
        Saver(small.place(name.removeprefix("runs/"))).begin().save(0, HEALTHY)
    small.settle()
    swept, read = [], small.index.run

    def slow(run):
        swept.append(run)
        small.clock.time += 300
        return read(run)

    firsts = []
    for _ in names:
        small.index.run = slow
        swept.clear()
        sweep(small.world)
        small.index.run = read
        assert swept
        firsts.append(swept[0])
        assert set(swept) < set(names)
    assert sorted(firsts) == names
