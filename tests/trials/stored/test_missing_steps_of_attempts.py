"""Steps that are missing from a run that was started again, and those that a later attempt hides."""

from __future__ import annotations

from smdebug.files.names import collections_key
from smdebug.runs import open_run, verify
from smdebug.storage.memory import MemoryStorage
from tests.trials.stored.lost_runs import FullDisk, meta_of, missing, remove, train
from tests.trials.writing import begin, end, write_step

CLOSED_AT_0 = {"closed": True, "last_step": 0, "steps_written": 1}


def test_what_a_resumed_attempt_overwrote_or_hides_is_not_missing():
    storage = MemoryStorage()
    train(storage, *range(8), killed=True)
    train(storage, 0, 3, 4)
    trial = open_run(storage)
    assert trial.steps() == [0, 3, 4]
    assert not trial.missing_steps
    assert verify(storage).is_sound


def test_a_training_that_was_killed_while_saving_and_begun_again_for_fewer_steps_is_sound():
    storage = MemoryStorage()
    train(storage, *range(6), killed=True)
    remove(storage, 4, 5)  # their event files are there: killed before their index files
    assert verify(storage).is_sound
    train(storage, 0, 1, 2)
    assert open_run(storage).steps() == [0, 1, 2]
    assert not open_run(storage).missing_steps
    found = verify(storage)
    assert found.is_sound, found.problems


def test_a_lost_step_below_the_one_at_which_the_training_resumed_is_missing():
    storage = MemoryStorage()
    begin(storage, meta={"run_id": "a", "training_run": 1, "resumed_at": 6})
    for step, before in ((0, None), (2, 0), (4, 2), (8, 4)):
        write_step(storage, step, meta=meta_of(0, before))
    write_step(storage, 6, meta={**meta_of(1, None), "resumed_at": 6})
    assert not open_run(storage).missing_steps
    remove(storage, 2)
    assert missing(storage) == "1 step is missing (first: 2)"
    remove(storage, 4, 8)
    assert not open_run(storage).missing_steps, "no file is left that names them"


def test_a_lost_step_that_a_later_attempt_saved_is_not_missing():
    storage = FullDisk(5)
    train(storage, *range(7), killed=True)
    storage.full = set()
    train(storage, *range(7))
    trial = open_run(storage)
    assert trial.steps() == list(range(7))
    assert not trial.missing_steps


def test_a_gap_between_steps_that_a_later_attempt_hides_is_none():
    storage = MemoryStorage()
    begin(storage, meta={"run_id": "a", "training_run": 1, "resumed_at": 5})
    lost = {"count": 1, "first": 7, "last": 7, "reason": "full"}
    write_step(storage, 0, meta=meta_of(0, None))
    write_step(storage, 8, meta={**meta_of(0, 6), "lost_steps": lost})
    write_step(storage, 5, meta={**meta_of(1, None), "resumed_at": 5})
    assert open_run(storage).steps() == [0, 5]
    assert not open_run(storage).missing_steps
    assert open_run(storage, attempt=0).missing_steps.count == 2


def test_steps_that_were_lost_after_a_later_attempt_took_over_do_not_count():
    storage = MemoryStorage()
    begin(storage, meta={"run_id": "a", "training_run": 1, "resumed_at": 5})
    lost = {"count": 1, "first": 1, "last": 1, "reason": "full"}
    write_step(storage, 2, meta={**meta_of(0, None), "lost_steps": lost})
    write_step(storage, 8, meta={**meta_of(0, 2), "lost_steps": {**lost, "count": 2, "last": 7}})
    write_step(storage, 5, meta={**meta_of(1, None), "resumed_at": 5})
    assert missing(storage) == "1 step is missing (first: 1): full"


def test_what_a_later_attempt_lacks_does_not_matter_to_an_earlier_one():
    storage = MemoryStorage()
    begin(storage, meta={"run_id": "a", "training_run": 1, "resumed_at": 2})
    for step, attempt, before in ((0, 0, None), (1, 0, 0), (2, 1, None), (4, 1, 3)):
        write_step(storage, step, meta={**meta_of(attempt, before), "resumed_at": 2 if attempt else None})
    assert not open_run(storage, attempt=0).missing_steps
    assert open_run(storage, attempt=1).missing_steps.first == 3


def test_a_worker_that_only_an_earlier_attempt_had_leaves_no_closing_note_for_a_later_one():
    storage = MemoryStorage()
    begin(storage, workers=2, present=1, meta={"run_id": "a", "training_run": 1, **CLOSED_AT_0})
    storage.write(
        collections_key("worker_1"),
        b'{"collections": {}, "_meta": {"num_workers": 2, "run_id": "a", "training_run": 0}}',
    )
    for worker in range(2):
        write_step(storage, 0, worker=worker, meta=meta_of(1 - worker, None))
    end(storage)
    assert not open_run(storage).missing_steps
