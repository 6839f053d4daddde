"""How a run falls silent, ends, and is finished."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import NamedTuple

import pytest

from functions.decisions.alerts import email
from functions.decisions.detail_types import RUN_STATE_CHANGE
from functions.lifecycle.upkeep import tend
from smdebug.exceptions import StorageUnavailable
from smdebug.files.names import END_MARKER
from smdebug.service.client import WatchedRun
from tests.functions.deployed_settings import settings as stack_settings
from tests.functions.promises.runs import RUN, cursor, found_steps, report_every_step, summaries
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld


def test_the_end_settles_what_is_missing_and_finishes_the_rules(small):
    first, second = (Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1"))
    for step in (0, 10):
        first.save(step, HEALTHY)
        second.save(step, FAILING)
    small.bucket.hold_back("000000000000_worker_1")
    small.place().delete("events/000000000000/000000000000_worker_1.tfevents")
    small.place().delete("index/000000000/000000000000_worker_1.json")
    first.end()
    small.settle()
    assert found_steps(small) == []
    small.pass_time(2000)
    assert found_steps(small) == [10]
    assert small.index.run(RUN).state.value == "Finished"


def test_a_silent_run_is_reported_and_finally_ended(small):
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    small.pass_time(2000)
    states = [detail["state"] for detail in small.details("Run State Change")]
    assert states == ["Running", "Silent"]
    small.pass_time(7 * 3600)
    states = [detail["state"] for detail in small.details("Run State Change")]
    assert states == ["Running", "Silent", "Finished"]


def test_a_silent_run_that_continues_is_running_again(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.settle()
    small.pass_time(2000)
    worker.save(1, FAILING)
    small.settle()
    states = [detail["state"] for detail in small.details("Run State Change")]
    assert states == ["Running", "Silent", "Running"]
    assert found_steps(small) == [1]


def test_a_step_after_the_end_is_evaluated_and_the_run_ends_again(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    worker.end()
    small.settle()
    small.pass_time(120)
    assert small.index.run(RUN).state.value == "Finished"
    worker.save(1, FAILING)
    small.settle()
    assert found_steps(small) == [1]
    small.pass_time(400)
    assert small.index.run(RUN).state.value == "Finished"
    assert small.statuses() == {"ExplodingTensor": "IssuesFound"}


def test_a_late_step_after_the_end_is_evaluated_and_the_summary_repeated(small):
    first, second = (Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1"))
    first.save(0, HEALTHY)
    second.save(0, FAILING)
    first.save(10, HEALTHY)
    second.save(10, HEALTHY)
    late = take_away(small, "000000000000_worker_1")
    first.end()
    small.settle()
    small.pass_time(2000)

    (summary,) = summaries(small)
    assert (summary["steps"], summary["not_evaluated"]) == (1, 1)
    assert (summary["statuses"], summary["verdict"]) == ({"Stopped": 1}, "Incomplete")
    (rule,) = (rule for group in small.index.groups.all_of(RUN) for rule in group.rules)
    assert "1 due step was not evaluated as a whole" in rule.reason

    late.files_arrive()
    assert found_steps(small) == [0]
    _, summary = summaries(small)
    assert (summary["steps"], summary["not_evaluated"]) == (2, 0)
    assert (summary["statuses"], summary["verdict"]) == ({"IssuesFound": 1}, "IssuesFound")
    assert small.index.run(RUN).state.value == "Finished"

    late.notifications_arrive()
    assert len(summaries(small)) == 2, "nothing has changed since"


class TakenAway(NamedTuple):
    """Files of a run that have not arrived yet, and their notifications."""

    small: SmallWorld
    files: dict[str, bytes]
    notifications: list[str]

    def files_arrive(self):
        for key, data in self.files.items():
            self.small.place().write(key, data)
        self.small.settle()
        self.small.pass_time(400)

    def notifications_arrive(self):
        self.small.bucket.release(self.notifications)
        self.small.settle()
        self.small.pass_time(400)


def take_away(small, name):
    """Take away the files with `name` in their keys, as if they were still on their way."""
    notifications = small.bucket.hold_back(name)
    place = small.place()
    files = {key: place.read(key) for key in place.list("") if name in key}
    for key in files:
        place.delete(key)
    return TakenAway(small, files, notifications)


def test_a_rule_attached_to_a_finished_run_is_in_its_next_summary(small):
    worker = Saver(small.place()).begin()
    worker.save(0, {"gradient/fc": 1e-9})
    worker.end()
    small.settle()
    small.pass_time(120)
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.settle()
    small.pass_time(400)
    before, after = summaries(small)
    assert before["statuses"] == {"NoIssuesFound": 1}
    assert after["statuses"] == {"NoIssuesFound": 1, "IssuesFound": 1}


def test_a_run_resumed_after_its_end_is_watched_again(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    worker.end()
    small.settle()
    small.pass_time(120)
    small.sweep()
    assert small.index.watched_runs() == []
    Saver(small.place(), training_run=1).begin()
    small.settle()
    assert [watched.run for watched in small.index.watched_runs()] == [RUN]
    assert small.index.run(RUN).state.value == "Running"
    assert RUN in small.schedules.at


def test_a_run_that_is_being_noted_or_listed_again_is_not_unlisted_meanwhile(small):
    small.index.list_run(RUN, small.clock.now())  # the first that happens to a new run
    small.sweep()
    (watched,) = small.index.watched_runs()
    small.index.list_run(RUN, small.clock.now())
    assert not small.index.unlist_run(watched)
    assert [watched.run for watched in small.index.watched_runs()] == [RUN]
    small.clock.time += 2 * 86_400  # whoever was noting it has died
    small.sweep()
    assert small.index.watched_runs() == []


def test_a_late_step_of_the_old_library_that_only_the_last_listing_shows_is_evaluated(small):
    report_every_step(small)
    worker = Saver(small.place(), run_id=None).begin()
    worker.save(0, HEALTHY)
    small.settle()
    worker.save(1, FAILING)
    small.bucket.hold_back()  # lost
    worker.save(2, HEALTHY)
    small.settle()
    assert (cursor(small), found_steps(small)) == (2, [])
    worker.end()
    small.settle()
    small.pass_time(2000)
    assert found_steps(small) == [1]
    assert small.statuses() == {"failing": "IssuesFound"}


def test_a_sagemaker_job_ends_by_its_own_event(small):
    from functions.decisions.messages import JobEnded
    from functions.lifecycle.announced_end import job_ended

    place = small.place("jobs/mnist-1/debug-output")
    Saver(place).begin().save(0, HEALTHY)
    small.settle()
    job_ended(small.world, JobEnded("mnist-1", "Completed"))
    small.pass_time(2000)
    assert small.index.run("runs/jobs/mnist-1/debug-output").state.value == "Finished"


@pytest.mark.parametrize("dies", [False, True])
def test_the_end_of_a_run_is_listed_in_as_many_invocations_as_it_takes(monkeypatch, dies):
    """Each has time for one page of each listing, and one of them may die."""
    monkeypatch.setattr("functions.arrivals.listed_files._PAGE", 4)
    small = SmallWorld(stack_settings(default_rules=("ExplodingTensor",), work=0.0))
    worker = Saver(small.place()).begin()
    small.settle()
    for step in range(20):
        worker.save(step, FAILING if step == 17 else HEALTHY)
    small.bucket.hold_back()
    worker.place.write(END_MARKER, b"")
    small.settle()
    small.clock.time += small.settings.end_grace
    listing = CountedListing(small.bucket.list, dies_in_invocation=3 if dies else None)
    small.bucket.list = listing
    while small.index.run(RUN).state.value == "Ending":
        listing.begin_invocation()
        with suppress(StorageUnavailable):
            tend(small.world, {"finish": RUN})

    assert len(listing.read) >= 40 // 4
    assert max(listing.read) <= 2 * 4 + 2, "not all that was listed before"
    small.settle()
    small.pass_time(4000)
    (summary,) = summaries(small)
    assert (summary["steps"], summary["not_evaluated"]) == (20, 0)
    assert summary["verdict"] == "IssuesFound"
    assert small.index.run(RUN).listed_through == ""


def test_a_finish_that_comes_before_the_time_for_the_last_files_is_over_does_nothing(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    worker.place.write(END_MARKER, b"")
    small.settle()
    small.clock.time += small.settings.end_grace - small.settings.early - 1
    tend(small.world, {"finish": RUN})
    assert small.index.run(RUN).state.value == "Ending"
    small.clock.time += 1
    tend(small.world, {"finish": RUN})
    assert small.index.run(RUN).state.value == "Ended"


def test_a_run_is_listed_page_by_page_by_one_function_while_it_has_time(small, monkeypatch):
    monkeypatch.setattr("functions.arrivals.listed_files._PAGE", 4)
    worker = Saver(small.place()).begin()
    small.settle()
    for step in range(20):
        worker.save(step, HEALTHY)
    small.bucket.hold_back()
    worker.place.write(END_MARKER, b"")
    small.settle()
    small.clock.time += small.settings.end_grace
    tend(small.world, {"finish": RUN})
    assert small.index.run(RUN).state.value == "Ended"
    small.settle()
    assert cursor(small) == 19


@pytest.mark.parametrize("lost", [(60, 99), (59, 60, 99)], ids=str)
def test_the_last_listing_begins_with_the_first_step_that_may_be_missing(small, lost):
    worker = Saver(small.place()).begin()
    for step in range(100):
        worker.save(step, HEALTHY)
        if step in lost:
            small.bucket.hold_back()
        small.settle()
    listing = CountedListing(small.bucket.list, dies_in_invocation=None)
    listing.begin_invocation()
    small.bucket.list = listing
    worker.place.write(END_MARKER, b"")
    small.settle()
    small.pass_time(2000)
    (summary,) = summaries(small)
    assert (summary["steps"], summary["last_step"], summary["not_evaluated"]) == (100, 99, 0)
    assert listing.read[0] < 100, "two objects a step, of 40 steps"


class CountedListing:
    """A listing that counts the objects that each invocation reads, and may die once in one of them."""

    def __init__(self, listing, *, dies_in_invocation):
        self._listing = listing
        self._dies_in = dies_in_invocation
        self.read = []

    def begin_invocation(self):
        self.read.append(0)

    def __call__(self, bucket, prefix, after=None):
        for listed in self._listing(bucket, prefix, after):
            self.read[-1] += 1
            yield listed
            if len(self.read) == self._dies_in:
                self._dies_in = None
                raise StorageUnavailable("s3://runs", "it died")


def ended_run(small, *, rules, steps=(0,)):
    """Save steps without gradients to a run that these rules watch, and end it; return its summary."""
    content = json.dumps({"version": 1, "default_rules": False, "rules": rules})
    small.place().write("rules.json", content.encode())
    worker = Saver(small.place()).begin()
    for step in steps:
        worker.save(step, {"w": 1.0})
    worker.end()
    small.settle()
    small.pass_time(2000)
    (summary,) = summaries(small)
    return summary


def test_a_run_on_which_no_rule_had_anything_to_check_has_not_passed(small):
    finished = ended_run(small, rules=["VanishingGradient"], steps=(0, 10))
    assert (finished["verdict"], finished["not_checked"]) == ("NotChecked", 1)
    assert (finished["steps"], finished["not_evaluated"]) == (2, 0)
    assert finished["statuses"] == {"NotChecked": 1}
    assert "Not checked: " in finished["rules"][0]["reason"]
    assert finished["rules"][0]["last_good_step"] is None
    details = small.details(RUN_STATE_CHANGE)
    (letter,) = (email(RUN_STATE_CHANGE, detail) for detail in details if detail["summary"])
    assert "Verdict:    nothing checked" in letter
    assert "not checked    VanishingGradient: no step held anything" in letter
    seen = WatchedRun(RUN, small.items, lambda _: small.place()).look()
    assert str(seen.summary.verdict) == "NotChecked"
    assert "Finished (NotChecked)" in repr(seen)


def test_a_run_that_one_rule_has_checked_has_passed(small):
    finished = ended_run(small, rules=["ExplodingTensor", "VanishingGradient"])
    assert (finished["verdict"], finished["not_checked"]) == ("NoIssuesFound", 1)


def test_a_run_without_rules_was_not_checked(small):
    finished = ended_run(small, rules=[])
    assert (finished["verdict"], finished["rules"]) == ("NotChecked", [])
