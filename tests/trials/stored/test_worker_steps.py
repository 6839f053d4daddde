"""What is kept of an index file, and what several share."""

from __future__ import annotations

import pytest

from smdebug.files.index import IndexFile, IndexMeta, ShapeRecord
from smdebug.mode_keys import ModeKeys
from smdebug.trials.stored.attempts import AttemptId
from smdebug.trials.stored.missing_steps import NOTHING_MISSING, Gap, MissingSteps
from smdebug.trials.stored.worker_steps import (
    ArrivedIndex,
    IndexLayout,
    Places,
    Sharing,
    Spans,
    lists_something,
    original_name_in,
    seconds,
    written_by,
)

TRAIN = ModeKeys.TRAIN
PREFIX = "smdebug/reductions"


def file_of(*names, mode=TRAIN, mode_step=3, records=(), **more):
    columns = {"crcs": None, "dtypes": None, "shapes": None, "starts": (0,) * len(names), "beside": 0}
    columns |= {"lengths": (8,) * len(names), "extras": {}, **more}
    meta = IndexMeta(mode, mode_step, "events/file", columns.pop("extras"))
    return IndexFile(meta, names, shape_records=tuple(records), **columns)


def step_of(file, step=7, worker="worker_0", sharing=None):
    sharing = Sharing() if sharing is None else sharing
    return sharing.worker_step(ArrivedIndex("key", step, worker, file))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.5, 1.5),
        (3, 3.0),
        (0, None),
        (-1, None),
        (1e11, None),
        (9e10, 9e10),
        (True, None),
        ("3", None),
        (None, None),
    ],
)
def test_a_time_is_a_number_of_seconds_of_this_age(value, found):
    assert seconds(value) == found


@pytest.mark.parametrize(
    ("starts", "lengths", "end"),
    [((), (), 0), ((0, 8), (8, 4), 12), ((20, 0), (4, 8), 24), ((0, 2), (9, 3), 9)],
)
def test_an_event_file_ends_with_its_last_record(starts, lengths, end):
    assert Spans(starts, lengths).end == end


def test_a_layout_has_the_places_of_each_tensor():
    layout = IndexLayout(("b", f"{PREFIX}/mean/b", f"{PREFIX}/abs_max/a"), ("b", "c"))
    assert layout.tensor_names == ("a", "b", "c")
    assert layout.of_tensor == {
        "a": Places(None, {("max", True): 2}),
        "b": Places(0, {("mean", False): 1}, 0),
        "c": Places(None, {}, 1),
    }


@pytest.mark.parametrize("name", [f"{PREFIX}/mean", f"{PREFIX}/mean/", f"{PREFIX}//w", "other/mean/w"])
def test_a_name_that_is_no_reduction_is_a_tensor(name):
    assert IndexLayout((name,), ()).tensor_names == (name,)


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (("w:0", f"{PREFIX}/mean/w"), True),
        (("w:0", "w:1", f"{PREFIX}/mean/w"), False),
        (("w:0", f"{PREFIX}/mean/v"), False),
        (("w", f"{PREFIX}/mean/w"), True),
        (("w:x", f"{PREFIX}/mean/w"), False),
    ],
)
def test_reductions_without_an_index_are_those_of_the_only_tensor_that_they_can_be_of(names, shared):
    places = IndexLayout(names, ()).of_tensor[names[0]]
    assert places.reductions == ({("mean", False): len(names) - 1} if shared else {})
    assert places.value == 0


def test_own_reductions_come_before_those_of_the_plain_name():
    places = IndexLayout(("w:0", f"{PREFIX}/mean/w", f"{PREFIX}/mean/w:0", f"{PREFIX}/max/w"), ()).of_tensor
    assert places["w:0"].reductions == {("mean", False): 2, ("max", False): 3}


def test_a_step_without_a_mode_counts_by_its_own_number():
    assert step_of(file_of("w", mode_step=3)).mode_step == 3
    assert step_of(file_of("w", mode=ModeKeys.GLOBAL, mode_step=3)).mode_step == 7


def test_what_a_file_says_of_other_steps_is_kept():
    extras = {"previous_step": 6, "steps_before": 2, "saved_at": 5.5, "run_id": "r", "training_run": 1}
    found = step_of(file_of("w", extras=extras))
    assert (found.previous_step, found.steps_before, found.saved_at) == (6, 2, 5.5)
    assert (found.step, found.worker, found.mode, found.event_file) == (7, "worker_0", TRAIN, "events/file")
    assert not found.observes_beside
    assert step_of(file_of("w", beside=1)).observes_beside is True
    assert step_of(file_of("w")).previous_step is None


@pytest.mark.parametrize("crcs", [None, (1, None), (1, 2)])
def test_checksums_are_kept_where_there_are_any(crcs):
    kept = step_of(file_of("v", "w", crcs=crcs)).checksums
    assert (None if kept is None else tuple(kept)) == crcs


def test_steps_with_the_same_names_and_places_share_them():
    sharing = Sharing()
    records = (ShapeRecord("s", "of", (2,)),)
    first = step_of(file_of("v", "w", records=records, shapes=((1,), (2,))), sharing=sharing)
    assert (len(sharing), sharing.size) == (1, 400 * 3 + 80 * 2)
    same = step_of(file_of("v", "w", records=records, shapes=((1,), (2,))), step=8, sharing=sharing)
    assert (len(sharing), sharing.size) == (1, 1360)
    assert same.layout is first.layout
    assert same.spans is first.spans
    assert same.shapes is first.shapes
    assert same.shape_records is first.shape_records
    assert same.attempt is first.attempt
    other = step_of(file_of("v", "w", records=records, starts=(0, 4)), sharing=sharing)
    assert (len(sharing), sharing.size) == (1, 1360 + 160)
    assert other.spans is not first.spans
    assert other.shapes is None
    plain = step_of(file_of("v"), sharing=sharing)
    assert (len(sharing), plain.shape_records) == (2, ())


def test_the_worker_that_is_asked_for_comes_first_and_others_where_it_has_nothing():
    workers = {
        name: step_of(file_of(*names), worker=name)
        for name, names in (("worker_0", ("v",)), ("worker_1", ("v", "w")), ("worker_2", ("w",)))
    }
    asked = [
        [at.worker for at, _ in written_by(workers, "w", worker)]
        for worker in (None, "worker_2", "worker_0", "x")
    ]
    assert asked == [
        ["worker_1", "worker_2"],
        ["worker_2"],
        ["worker_1", "worker_2"],
        ["worker_1", "worker_2"],
    ]
    assert written_by(workers, "none") == []
    assert written_by(workers, "w")[0][1] == Places(1)


def test_the_name_that_the_framework_gave_is_in_the_first_record_of_a_shape():
    records = (ShapeRecord("v", "as/v", ()), ShapeRecord("w", "as/w", (2,)))
    workers = {"worker_0": step_of(file_of("w")), "worker_1": step_of(file_of("w", records=records))}
    assert original_name_in(workers, "w") == "as/w"
    assert original_name_in(workers, "x") is None
    assert original_name_in({"worker_0": workers["worker_0"]}, "w") is None


def test_a_file_without_entries_lists_nothing():
    assert lists_something(file_of("w"))
    assert lists_something(file_of(records=[ShapeRecord("w", "w", ())]))
    assert not lists_something(file_of())


@pytest.mark.parametrize(
    ("meta", "attempt"),
    [
        ({}, AttemptId()),
        ({"run_id": "a", "training_run": 2, "resumed_at": 30}, AttemptId("a", 2, 30)),
        ({"run_id": 1, "training_run": -1, "resumed_at": -1}, AttemptId()),
        ({"training_run": True, "resumed_at": 3.0}, AttemptId()),
        ({"training_run": 0, "resumed_at": 0}, AttemptId(None, 0, 0)),
    ],
)
def test_an_attempt_is_named_by_whole_numbers(meta, attempt):
    assert AttemptId.named_in(meta) == attempt
    assert attempt.key == (attempt.run_id, attempt.training_run)


FULL = "the disk is full"


@pytest.mark.parametrize(
    ("gaps", "count", "words"),
    [
        ([Gap("a", 1, 5, 5)], 1, "1 step is missing (first: 5)"),
        ([Gap("a", 3, 5, 9)], 3, "3 steps are missing (from 5 on)"),
        ([Gap("a", 1, 5, 5), Gap("b", 1, 5, 5)], 1, "1 step is missing (first: 5)"),
        ([Gap("a", 1, 5, 5), Gap("b", 1, 7, 7)], 2, "2 steps are missing (first: 5)"),
        ([Gap("a", 2, 8, 9), Gap("a", 1, 3, 3)], 3, "3 steps are missing (first: 3)"),
        ([Gap("a", 2, 8, 9), Gap("b", 3, 4, 9)], 3, "3 steps are missing (from 4 on)"),
        ([Gap("a", 4, 6, None, FULL)], 4, f"at least 4 steps are missing (first: 6): {FULL}"),
        ([Gap("a", 2, 6, 9, FULL)], 2, f"2 steps are missing (first: 6): {FULL}"),
    ],
)
def test_missing_steps_are_counted_once_and_said(gaps, count, words):
    missing = MissingSteps(tuple(gaps))
    assert (missing.count, str(missing)) == (count, words)
    assert missing.first == min(gap.first for gap in gaps)
    assert missing
    assert missing.to_dict()["gaps"][0]["first"] == gaps[0].first


def test_workers_that_left_no_note_are_named_up_to_eight():
    names = tuple(f"worker_{number}" for number in range(9))
    missing = MissingSteps((Gap("a", 1, 5, 5),), names)
    assert str(missing) == (
        "1 step is missing (first: 5); the run ended without a closing note of "
        f"{', '.join(names[:8])}, so its last steps may be missing"
    )
    assert MissingSteps((), names)
    assert not NOTHING_MISSING
    assert (str(NOTHING_MISSING), NOTHING_MISSING.count, NOTHING_MISSING.first) == ("", 0, None)


@pytest.mark.parametrize(
    ("gap", "file", "problem"),
    [
        (Gap("w", 1, 5, 5), 5, "step 5 was saved, and the index file is gone"),
        (Gap("w", 3, 5, 9), 9, "3 steps from 5 to 9 were saved, and the index file is gone"),
        (Gap("w", 1, 5, 5, FULL), 5, f"step 5 could not be written: {FULL}"),
        (Gap("w", 2, 5, 6, FULL), 5, f"2 steps from 5 to 6 could not be written: {FULL}"),
        (Gap("w", 2, 5, None, FULL), 5, f"at least 2 steps could not be written, from step 5 on: {FULL}"),
    ],
)
def test_a_gap_is_said_with_the_file_that_shows_it(gap, file, problem):
    assert gap.problem == problem
    assert gap.was_written == (FULL not in problem)
    assert f"{file:012d}_w" in gap.file


@pytest.mark.parametrize(
    ("step", "worker", "last", "is_held"),
    [
        (5, "w", 9, True),
        (9, "w", 9, True),
        (4, "w", 9, False),
        (10, "w", 9, False),
        (5, "v", 9, False),
        (99, "w", None, True),
    ],
)
def test_a_gap_holds_the_steps_from_its_first_to_its_last(step, worker, last, is_held):
    from smdebug.files.names import StepFile

    assert Gap("w", 2, 5, last).holds(StepFile(step, worker)) is is_held
