"""Schedules of faults under real hooks, a few seconds of them; `make writer-faults` runs more."""

from __future__ import annotations

import pytest

from tests.faults.writer.bucket import FaultyBucket
from tests.faults.writer.defects import DEFECTS, found_at
from tests.faults.writer.judging import judge
from tests.faults.writer.kills import killed_runs
from tests.faults.writer.oracle import broken_promises
from tests.faults.writer.reading import read
from tests.faults.writer.schedule import BUCKET_FAULTS, FOLDER_FAULTS, Fault, Schedule, Worker
from tests.faults.writer.training import place_of, train

SCHEDULES = 200
# Each of these broke a promise once; the tests of `saving` and `storage` describe the defects.
ONCE_BROKEN = {
    "a file that was refused when it was closed stayed, cut off": (193, 214, 457, 656),
    "values that came late made a step of one that was given up": (149,),
    "the chief did not wait after a failed listing": (212, 925),
    "a claim that could not be renewed cost a step": (392,),
}


def a_schedule(place: str, *faults: Fault, workers: int = 1) -> Schedule:
    """Return a schedule of four steps, with these faults in its first process."""
    processes = [Worker(rank, 4, 0.5, "closes") for rank in range(workers)]
    processes[0].faults += faults
    return Schedule(1, place, processes, 1, 700, False, 256.0, 30.0)


@pytest.mark.parametrize("place", ["folder", "bucket"])
@pytest.mark.parametrize("workers", [1, 4])
def test_without_faults_everything_is_visible_and_nothing_is_logged(place, workers):
    schedule = a_schedule(place, workers=workers)
    with place_of(schedule) as at:
        attempt = train(schedule, at)
        reading = read(at.storage())
    assert list(broken_promises(attempt, reading)) == []
    assert reading.is_sound
    assert reading.has_ended
    assert sorted(reading.seen) == [0, 1, 2, 3]
    assert {len(seen) for seen in reading.seen.values()} == {workers}
    assert [text for handed in attempt.handed for _, level, text in handed.process.log if level > 20] == []


@pytest.mark.parametrize("seed", [11, 12])
def test_the_same_seed_gives_the_same_story(seed):
    assert judge(seed, keeps_history=True).story == judge(seed, keeps_history=True).story


@pytest.mark.parametrize(
    ("defect", "seed"), [(name, seed) for name in ONCE_BROKEN for seed in ONCE_BROKEN[name]]
)
def test_a_schedule_that_once_broke_a_promise_breaks_none(defect, seed):
    assert judge(seed).problems == []


def test_no_schedule_breaks_a_promise_and_every_kind_of_fault_strikes():
    verdicts = {seed: judge(seed) for seed in range(SCHEDULES)}
    assert {seed: verdict.problems for seed, verdict in verdicts.items() if verdict.problems} == {}
    befell = {what for verdict in verdicts.values() for what in verdict.befell}
    assert befell >= {*FOLDER_FAULTS, *BUCKET_FAULTS, "killed"}


def test_killed_processes_leave_their_first_steps_and_a_place_for_the_next_attempt():
    runs = killed_runs(6)
    assert [run for run in runs if run.problems] == []
    assert len({run.steps for run in runs}) > 2


@pytest.mark.parametrize("kind", ["throttled", "internal", "expired", "denied", "unreachable"])
def test_a_bucket_that_refuses_everything_loses_all_steps_and_says_so(kind):
    schedule = a_schedule("bucket", Fault(kind, 0, float("inf"), float("inf"), ""))
    bucket = FaultyBucket()
    attempt = train(schedule, bucket)
    assert bucket.objects == {}
    assert list(broken_promises(attempt, read(bucket.storage()))) == []
    (handed,) = attempt.handed
    assert handed.trained == 4
    assert any("Lost: 4 (0, 1, 2, 3)" in text or "stops saving" in text for _, _, text in handed.process.log)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_deliberate_defect_still_fits_its_source(defect):
    compile(defect.applied(), defect.file, "exec")


@pytest.mark.parametrize(
    "name", ["an index file is written before its event file", "a lost step is not counted"]
)
def test_a_deliberate_defect_is_found(name):
    (number,) = (n for n, defect in enumerate(DEFECTS) if defect.name == name)
    assert found_at(number) is not None
