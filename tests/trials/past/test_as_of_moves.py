"""What moving a view as of a step shows and hides."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import (
    SMDebugNotImplementedError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import no_refresh
from smdebug.trials.past.history import MemoryHistory, StepSummary
from smdebug.trials.past.listed_history import ListedHistory
from smdebug.trials.progress import StepState
from tests.trials.viewing import (
    COLLECTIONS,
    FarStorage,
    never,
    outcome,
    plain,
    recorded,
    view_of,
    written_by,
)
from tests.trials.writing import begin, write_step

GLOBAL, TRAIN, EVAL, PREDICT = ModeKeys.GLOBAL, ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT


def a_run(*steps: int, workers: int = 1) -> MemoryStorage:
    storage = begin(MemoryStorage(), workers, COLLECTIONS)
    for step in steps:
        for worker in range(workers):
            write_step(storage, step, {"loss": float(step)}, worker=worker)
    return storage


def at_step(storage: MemoryStorage, step: int) -> Any:
    view = view_of(storage, recorded(storage, step - 1), far=FarStorage(storage))
    view.move_to(step, written_by(storage)[step])
    return view


@pytest.fixture(autouse=True)
def nothing_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", never)


def test_what_comes_later_is_not_yet_there_and_is_not_waited_for():
    view = at_step(a_run(0, 2, 4, 6), 4)
    loss = view.tensor("loss")
    assert view.has_passed_step(5) is view.has_passed_step(6) is StepState.NOT_YET_AVAILABLE
    for ask in (view.wait_for_steps, lambda steps: loss.value(steps[0])):
        with pytest.raises(StepNotYetAvailable):
            ask([6])
        with pytest.raises(StepUnavailable):
            ask([3])
    view.wait_for_steps([0, 2, 4])
    assert loss.steps() == [0, 2, 4]
    assert view.as_of == view.last_complete_step == 4
    assert not view.loaded_all_steps


def test_a_view_that_has_not_looked_yet_has_no_steps():
    view = view_of(a_run(0, 1), recorded(a_run(0, 1), 1))
    assert view.steps() == view.workers() == view.tensor_names() == []
    assert view.has_passed_step(0) is StepState.NOT_YET_AVAILABLE
    assert view.as_of == -1


def test_what_a_look_tells_is_what_is_to_be_recorded():
    storage = begin(MemoryStorage(), 2, COLLECTIONS)
    for worker in (0, 1):
        held = {"loss": 1.0, f"only/{worker}": 2.0}
        write_step(storage, 12, held, worker=worker, mode=TRAIN, mode_step=7)
    view = view_of(storage, MemoryHistory())
    summary = view.move_to(12, ["worker_1", "worker_0"])
    assert summary[:4] == (12, TRAIN, 7, ("worker_0", "worker_1"))
    layout = view.layout(summary.layout)
    assert layout.names == ("loss", "only/0", "only/1")
    assert (layout.digest, layout.mode, layout.first_step) == (summary.layout, "TRAIN", 12)
    assert layout.workers == ("worker_0", "worker_1")


def test_the_same_tensors_in_another_mode_are_another_layout():
    storage = begin(MemoryStorage(), 1, COLLECTIONS)
    for step, mode in enumerate([TRAIN, EVAL, TRAIN]):
        write_step(storage, step, {"loss": 1.0}, mode=mode, mode_step=step)
    view = view_of(storage, MemoryHistory())
    first, second, third = (view.move_to(step, ["worker_0"]).layout for step in range(3))
    assert first == third != second


def test_moving_back_takes_away_what_had_not_come_yet():
    storage = a_run(0)
    write_step(storage, 1, {"late": 1.0})
    view = at_step(storage, 1)
    assert view.tensor("late").value(1) == 1
    view.move_to(0, ["worker_0"])
    assert view.tensor_names() == ["loss"]
    with pytest.raises(TensorUnavailable):
        view.tensor("late")


def test_a_step_looked_at_late_is_there_from_then_on():
    storage = a_run(0, 1, 2)
    view = view_of(storage, MemoryHistory())
    view.move_to(0, ["worker_0"])
    view.move_to(2, ["worker_0"])
    assert view.tensor("loss").prev_steps(2, 3) == [0, 2]
    view.move_to(1, ["worker_0"])
    assert view.tensor("loss").prev_steps(2, 3) == [0, 1]
    view.move_to(2, ["worker_0"])
    assert view.tensor("loss").prev_steps(2, 3) == [0, 1, 2]


def test_news_of_the_past_are_heard_when_they_are_asked_for():
    storage, recorder = a_run(0, 1, 2), recorded(a_run(0, 1, 2), 1, steps=[0])
    view = view_of(storage, recorder)
    view.move_to(2, ["worker_0"])
    assert view.steps() == [0, 2]
    recorder.record(view, view_of(storage, MemoryHistory()).move_to(1, ["worker_0"]))
    assert view.steps() == [0, 2]
    view.refresh_data()
    assert view.steps() == [0, 1, 2]


def test_steps_at_which_nobody_looked_are_read_when_something_in_them_is_asked_for():
    storage = begin(MemoryStorage(), 1, COLLECTIONS)
    for step, mode in enumerate([TRAIN, EVAL, TRAIN]):
        write_step(storage, step, {f"of_{mode.name}": 1.0}, mode=mode, mode_step=step)
    unseen = MemoryHistory([StepSummary.unread(step, ["worker_0"]) for step in (0, 1)])
    view = view_of(storage, unseen, far=(far := FarStorage(storage)))
    view.move_to(2, ["worker_0"])
    assert view.mode_modestep(1) == (EVAL, 1)
    assert view.tensor_names(step=1, mode=EVAL) == ["of_EVAL"]
    assert view.tensor("of_TRAIN").prev_steps(2, 5, TRAIN) == [0, 2]
    assert sorted(far.gets()) == [names.index_key(step, "worker_0") for step in range(3)]


@pytest.mark.parametrize("content", [b"{", b"", None])
def test_a_step_without_a_worker_whose_index_file_is_no_good(content: bytes | None):
    storage = a_run(0, 1, workers=2)
    key = names.index_key(1, "worker_0")
    storage.delete(key)
    if content is not None:
        storage.write(key, content)
    view = view_of(storage, MemoryHistory())
    summary = view.move_to(1, ["worker_0", "worker_1"])
    assert summary.workers == ("worker_1",)
    assert view.tensor("loss").workers(1) == ["worker_1"]
    assert view.tensor("loss").value(1) == 1
    assert list(view.damaged_files) == ([] if content is None else [key])


def test_a_step_of_which_nothing_can_be_read_is_not_there():
    storage = a_run(0, 1, 2)
    storage.write(names.index_key(1, "worker_0"), b"{")
    recorder = recorded(storage, 1)
    assert recorder.steps[1].workers == ()
    view = view_of(storage, recorder, far=(far := FarStorage(storage)))
    assert view.move_to(1, ["worker_0"]) == StepSummary(1, GLOBAL, 1, ())
    with pytest.raises(StepUnavailable):
        view.wait_for_steps([1])
    view.move_to(1, ["worker_0"])
    assert far.gets().count(names.index_key(1, "worker_0")) == 1
    view.move_to(2, ["worker_0"])
    assert view.steps() == [0, 2]
    assert view.tensor("loss").prev_steps(2, 2) == [0, 2]


def test_an_event_file_that_is_gone_is_not_waited_for():
    storage = a_run(0, 1)
    storage.delete(names.event_key(1, "worker_0"))
    with pytest.raises(TensorUnavailableForStep):
        at_step(storage, 1).tensor("loss").value(1)


def test_the_original_name_is_that_of_the_first_step_with_a_shape():
    storage = begin(MemoryStorage(), 1, COLLECTIONS)
    write_step(storage, 0, {"x": 1.0})
    write_step(storage, 1, {"x": 1.0}, shapes={"x": (1,)})
    write_step(storage, 2, {"x": 1.0})
    assert at_step(storage, 0).tensor("x").original_name is None
    assert at_step(storage, 2).tensor("x").original_name == "x"


def test_two_steps_of_the_same_number_in_a_mode_are_one_and_the_later_counts():
    storage = begin(MemoryStorage(), 1, COLLECTIONS)
    for step, mode_step in enumerate([0, 1, 1, 2]):
        write_step(storage, step, {"loss": float(step)}, mode=TRAIN, mode_step=mode_step)
    loss = at_step(storage, 3).tensor("loss")
    assert loss.steps(TRAIN) == loss.prev_steps(2, mode=TRAIN) == [0, 1, 2]
    assert loss.value(1, TRAIN) == 2


def test_another_run_that_has_passed_a_step_skipped_it_and_one_that_has_not_is_behind():
    storage = a_run(0, 1, 5)
    view = view_of(storage, recorded(storage, 5))
    assert view.limit_to(1)
    assert not view.limit_to(3, passed=True)
    assert view.has_passed_step(3) is StepState.UNAVAILABLE
    assert not view.limit_to(3, passed=False)
    assert view.has_passed_step(3) is view.has_passed_step(2) is StepState.NOT_YET_AVAILABLE
    assert view.has_passed_step(1) is StepState.AVAILABLE
    assert view.steps() == view.tensor("loss").steps() == [0, 1]
    assert view.tensor("loss").value(1) == 1


@pytest.mark.parametrize("listed", [False, True])
def test_another_run_that_was_behind_comes_along(listed: bool):
    storage, recorder = a_run(0), recorded(a_run(0), 0)
    far = FarStorage(storage, may_list=True)
    other = view_of(storage, ListedHistory(far, 10**12) if listed else recorder, far=far)
    assert not other.limit_to(2, passed=False)
    with pytest.raises(StepNotYetAvailable):
        other.wait_for_steps([2])
    assert other.steps() == [0]
    write_step(storage, 2, {"loss": 2.0})
    recorder.record(filling := view_of(storage, MemoryHistory()), filling.move_to(2, ["worker_0"]))
    assert other.limit_to(2, passed=False)
    assert other.steps() == [0, 2]
    assert other.tensor("loss").value(2) == 2


def test_a_step_that_was_not_there_is_asked_for_again_at_the_next_look():
    storage, recorder = a_run(0, 1, 2, 3), recorded(a_run(0), 0)
    view = view_of(storage, recorder)
    view.move_to(2, ["worker_0"])
    assert view.has_passed_step(1) is StepState.UNAVAILABLE
    recorder.record(filling := view_of(storage, MemoryHistory()), filling.move_to(1, ["worker_0"]))
    recorder.asked.clear()
    assert view.has_passed_step(1) is StepState.UNAVAILABLE
    assert recorder.asked == []
    view.move_to(3, ["worker_0"])
    assert view.has_passed_step(1) is StepState.AVAILABLE


def test_an_index_file_that_was_asked_for_too_early_is_looked_for_again():
    storage = a_run(0, 1, workers=2)
    late = storage.read(key := names.index_key(1, "worker_1"))
    storage.delete(key)
    view = view_of(storage, recorded(storage, 0), far=(far := FarStorage(storage)))
    for _ in range(3):
        assert list(view.written_by(1, ["worker_0", "worker_1"])) == ["worker_0"]
    assert far.gets().count(key) == 1
    storage.write(key, late)
    assert view.move_to(1, ["worker_0", "worker_1"]).workers == ("worker_0", "worker_1")


def test_a_view_is_the_trial_of_its_run_to_code_that_compares_them():
    storage = a_run(0)
    view, oracle = at_step(storage, 0), plain(storage, storage.location)
    assert view == oracle
    assert hash(view) == hash(oracle)
    assert view != view_of(storage, MemoryHistory(), path="elsewhere")
    assert repr(view) == f"<AsOfTrial 'a trial' at {storage.location}, as of step 0>"


def test_no_refresh_holds_and_changes_nothing():
    view = at_step(a_run(0, 1), 1)
    with no_refresh([view]):
        assert not view.dynamic_refresh
        assert view.steps() == [0, 1]
        view.wait_for_steps([1])
    assert view.dynamic_refresh


def test_listing_index_files_is_refused():
    with pytest.raises(SMDebugNotImplementedError, match="lists all its steps"):
        at_step(a_run(0), 0).index_reader


@pytest.mark.parametrize("step", ["1", None, [1]])
def test_what_is_no_step_is_refused_as_by_a_trial(step: Any):
    storage = a_run(0, 1)
    view, oracle = at_step(storage, 1), plain(storage, storage.location)
    for mode in (GLOBAL, TRAIN):
        assert outcome(lambda mode=mode: view.has_passed_step(step, mode)) == outcome(
            lambda mode=mode: oracle.has_passed_step(step, mode)
        )
    assert view.global_step(GLOBAL, step) == step
    assert view.has_passed_step(1.0) is StepState.AVAILABLE
    assert view.has_passed_step(np.int64(1)) is StepState.AVAILABLE
    assert view.has_passed_step(0.5) is StepState.UNAVAILABLE


def test_threads_may_share_a_view():
    storage = a_run(*range(0, 60, 2), workers=3)
    far = FarStorage(storage)
    view = view_of(storage, recorded(storage, 57), far=far)
    view.move_to(58, [f"worker_{number}" for number in range(3)])
    loss = view.tensor("loss")

    def ask(number: int) -> Any:
        step = 2 * (number % 30)
        return loss.prev_steps(step, 4), loss.value(step, worker=f"worker_{number % 3}").item()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(240)))
    for number, (steps, value) in enumerate(answers):
        step = 2 * (number % 30)
        assert steps == list(range(max(0, step - 6), step + 1, 2))
        assert value == step
    assert len(far.gets()) == len(set(far.gets()))


def test_the_workers_are_all_that_have_written_so_far():
    storage = a_run(0, 1, workers=2)
    storage.delete(names.index_key(1, "worker_0"))
    assert at_step(storage, 1).workers() == ["worker_0", "worker_1"]


def test_a_tensor_is_known_from_the_earliest_step_that_was_looked_at():
    view = view_of(a_run(0, 3, 5), MemoryHistory())
    for step in (5, 3):
        view.move_to(step, ["worker_0"])
        assert view.tensor_names() == ["loss"]
        assert view.tensor("loss").first_seen() == step


def test_a_run_that_is_only_listed_tells_the_tensors_of_the_step_it_is_viewed_at():
    storage = begin(MemoryStorage(), 2, COLLECTIONS)
    for step in range(0, 40, 10):
        for worker in (0, 1):
            write_step(storage, step, {f"of/{worker}": float(step)}, worker=worker)
    far = FarStorage(storage, may_list=True)
    view = view_of(storage, ListedHistory(far, 10**12), far=far)
    assert view.limit_to(20, passed=True)
    assert view.tensor_names() == ["of/0", "of/1"]
    assert view.tensor("of/1").value(20) == 20
    assert [kind for kind, _ in far.asked] == ["list", "get", "get", "get"]
    assert not view.limit_to(25, passed=True)
    with pytest.raises(StepUnavailable):
        view.wait_for_steps([25])
    assert view.tensor("of/0").prev_steps(25, 2) == [10, 20]
