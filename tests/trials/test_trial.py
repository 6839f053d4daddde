from __future__ import annotations

import copy
import pickle

import pytest

from smdebug.config.collection import Collection
from smdebug.exceptions import (
    NoMoreData,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
)
from smdebug.mode_keys import ModeKeys
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.progress import StepState
from tests.trials.writing import (
    StoppedClock,
    a_run,
    begin,
    end,
    open_trial,
    write_step,
)

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
AVAILABLE, UNAVAILABLE = StepState.AVAILABLE, StepState.UNAVAILABLE
NOT_YET = StepState.NOT_YET_AVAILABLE


class TestSteps:
    def test_steps_are_counted_within_a_mode_or_globally(self, storage):
        trial = open_trial(storage)
        assert trial.steps() == trial.steps(None) == trial.available_steps() == [0, 3, 4, 6]
        assert trial.steps(TRAIN) == trial.available_steps(TRAIN) == [0, 3]
        assert trial.steps(mode=EVAL) == [0]
        assert trial.steps(ModeKeys.PREDICT) == []

    def test_incomplete_steps_are_listed_on_request(self, storage):
        write_step(storage, 7, mode=TRAIN, mode_step=4)
        trial = open_trial(storage)
        assert trial.steps() == [0, 3, 4, 6]
        assert trial.steps(show_incomplete_steps=True) == [0, 3, 4, 6, 7]
        assert trial.steps(TRAIN, show_incomplete_steps=True) == [0, 3, 4]

    def test_a_global_step_and_a_modes_step_lead_to_each_other(self, storage):
        trial = open_trial(storage)
        assert (trial.mode(4), trial.mode_step(4)) == trial.mode_modestep(4) == (EVAL, 0)
        assert trial.global_step(EVAL, 0) == 4
        assert trial.mode_modestep(5) == (None, None)
        assert trial.mode(5) is trial.mode_step(5) is None
        assert trial.global_step(EVAL, 1) is None

    def test_modes_do_not_list_global(self, storage):
        assert list(open_trial(storage).modes()) == [TRAIN, EVAL]

    def test_two_global_steps_that_share_a_mode_step_stay_apart_as_global_steps(self):
        storage = begin(MemoryStorage())
        write_step(storage, 5, {"w": [1.0]}, mode=TRAIN, mode_step=2)
        write_step(storage, 9, {"w": [2.0]}, mode=TRAIN, mode_step=2)
        w = open_trial(storage).tensor("w")
        assert [w.value(5), w.value(9), w.value(2, TRAIN)] == [[1.0], [2.0], [2.0]]

    def test_workers_are_those_that_saved_something(self, storage):
        trial = open_trial(storage)
        assert trial.workers() == ["worker_0", "worker_1"]
        assert trial.workers_for_global_step[3] == {"worker_0", "worker_1"}
        assert trial.num_workers == 2

    def test_a_range_leaves_all_other_steps_out(self, storage):
        trial = open_trial(storage, range_steps=(3, 6))
        assert trial.steps() == [3, 4]
        assert open_trial(storage, range_steps=(None, 4)).steps() == [0, 3]
        assert open_trial(storage, range_steps=[4, None]).steps() == [4, 6]
        with pytest.raises(StepNotYetAvailable):
            trial.tensor("w").value(6)

    @pytest.mark.parametrize("wrong", [(-1, 3), (3, 1), (1, 1), ("1", 2), (0, 1, 2), (1.5, 2), 7])
    def test_a_range_that_is_none_is_refused(self, storage, wrong):
        with pytest.raises(AssertionError) as refused:
            open_trial(storage, range_steps=wrong)
        assert isinstance(refused.value, SMDebugValueError)


class TestStates:
    def test_a_step_is_there_or_was_skipped_or_may_come(self, storage):
        write_step(storage, 8)
        trial = open_trial(storage)
        states = [trial.has_passed_step(step) for step in (3, 5, 8, 9)]
        assert states == [AVAILABLE, UNAVAILABLE, NOT_YET, NOT_YET]
        assert [trial.has_passed_step(step, TRAIN) for step in (0, 1, 4)] == [
            AVAILABLE,
            UNAVAILABLE,
            NOT_YET,
        ]

    def test_an_incomplete_mode_step_is_there_after_the_end(self, storage):
        write_step(storage, 8, mode=EVAL, mode_step=1)
        end(storage)
        trial = open_trial(storage)
        assert trial.has_passed_step(1, EVAL) is AVAILABLE
        assert trial.has_passed_step(2, EVAL) is UNAVAILABLE
        assert trial.loaded_all_steps
        assert trial.last_complete_step == 8

    def test_waiting_for_a_step_returns_when_all_workers_have_written_it(self, storage):
        clock = StoppedClock(
            lambda: write_step(storage, 8, worker=0), lambda: write_step(storage, 8, worker=1)
        )
        trial = open_trial(storage, clock)
        trial.wait_for_steps([3, 8])
        assert not clock.happenings
        assert trial.steps()[-1] == 8

    def test_waiting_for_a_skipped_step_says_so(self, storage):
        with pytest.raises(StepUnavailable, match="Step 5 of mode GLOBAL"):
            open_trial(storage).wait_for_steps([5])

    def test_waiting_past_the_end_says_where_it_was(self, storage):
        clock = StoppedClock(lambda: end(storage))
        trial = open_trial(storage, clock)
        with pytest.raises(NoMoreData) as no_more:
            trial.wait_for_steps([9])
        assert no_more.value.args == (9, GLOBAL, 6)
        with pytest.raises(NoMoreData, match=r"mode PREDICT.*Max step available is -1"):
            trial.wait_for_steps([0], ModeKeys.PREDICT)
        with pytest.raises(StepUnavailable):
            trial.wait_for_steps([1], TRAIN)

    @pytest.mark.parametrize("before", [True, False])
    def test_waiting_looks_for_news_and_leaves_the_setting_as_it_was(self, storage, before):
        clock = StoppedClock(lambda: write_step(storage, 7), lambda: write_step(storage, 7, worker=1))
        trial = open_trial(storage, clock)
        trial.dynamic_refresh = before
        trial.wait_for_steps([7])
        assert trial.dynamic_refresh is before
        with pytest.raises(StepUnavailable):
            trial.wait_for_steps([5])
        assert trial.dynamic_refresh is before

    def test_the_window_gives_up_on_a_worker_that_fell_silent(self):
        storage = begin(MemoryStorage(), workers=2)
        for step in range(13):
            write_step(storage, step, worker=0)
        trial = open_trial(storage, incomplete_steps=10)
        assert trial.steps() == [0, 1, 2, 3, 4]
        assert trial.last_complete_step == 4
        key = "index/000000000/000000000004_worker_1.json"
        assert trial.last_index_token == f"{trial.path}/{key}"

    def test_a_file_that_comes_late_for_a_settled_step_is_seen_by_fresh_trials_only(self, storage):
        write_step(storage, 7, {"late": 1.0}, worker=0)
        for worker in (0, 1):
            write_step(storage, 8, worker=worker)
        trial = open_trial(storage)
        write_step(storage, 7, {"late": 2.0}, worker=1)
        assert trial.tensor("late").workers(7) == ["worker_0"]
        assert open_trial(storage).tensor("late").workers(7) == ["worker_0", "worker_1"]

    def test_a_step_is_a_number(self, storage):
        with pytest.raises(SMDebugTypeError, match="whole number"):
            open_trial(storage).has_passed_step("x")
        with pytest.raises(SMDebugTypeError, match="mode"):
            open_trial(storage).steps(7)
        with pytest.raises(SMDebugValueError, match="TRAIN, EVAL"):
            open_trial(storage).steps("training")
        assert open_trial(storage).steps("train") == [0, 3]


class TestNames:
    def test_all_arguments_narrow_the_choice(self, storage):
        trial = open_trial(storage)
        assert trial.tensor_names() == ["labels", "labels_10", "labels_2", "loss", "w"]
        assert trial.tensor_names(step=0) == trial.tensor_names(step=3, mode=TRAIN) == ["loss", "w"]
        assert trial.tensor_names(mode=EVAL) == ["labels", "labels_10", "labels_2", "loss"]
        assert trial.tensor_names(regex="^l.*s$") == ["labels", "loss"]
        assert trial.tensor_names(step=0, regex=["w", "nothing"]) == ["w"]
        assert trial.tensor_names(collection="losses") == ["loss"]
        assert trial.tensor_names(collection="picked", mode=EVAL) == []

    def test_a_mode_or_step_without_data_has_no_names(self, storage):
        trial = open_trial(storage)
        assert trial.tensor_names(mode=ModeKeys.PREDICT) == []
        assert trial.tensor_names(step=77) == trial.tensor_names(step=77, mode=EVAL) == []

    def test_a_collection_has_the_names_it_lists_and_those_it_matches(self, storage):
        mine = Collection("mine", include_regex=["_2$"], tensor_names=["w"])
        assert open_trial(storage).tensor_names(collection=mine) == ["labels_2", "w"]

    def test_asking_wrongly_says_how_to_ask(self, storage):
        trial = open_trial(storage)
        with pytest.raises(SMDebugValueError, match="Only one of"):
            trial.tensor_names(regex="x", collection="losses")
        with pytest.raises(SMDebugTypeError):
            trial.tensor_names(collection=5)
        with pytest.raises(SMDebugTypeError):
            trial.tensor_names(regex=5)
        with pytest.raises(SMDebugValueError, match=r"'\('"):
            trial.tensor_names(regex="(")
        with pytest.raises(SMDebugValueError, match="take forever"):
            trial.tensor_names(regex="(a+)+$")

    def test_reading_an_absent_collection_does_not_make_one(self, storage):
        trial = open_trial(storage)
        assert trial.collection("nope").tensor_names == set()
        assert trial.tensor_names(collection="nope") == []
        assert set(trial.collections()) == {"losses", "picked"}

    def test_collections_are_read_again_when_new_names_appear(self, storage):
        trial = open_trial(storage)
        begin(storage, 2, {"mine": {"tensor_names": ["new"]}})
        for worker in (0, 1):
            write_step(storage, 9, {"new": 1.0}, worker=worker)
        assert trial.tensor_names(collection="mine") == ["new"]

    def test_the_older_names_do_the_same(self, storage):
        trial = open_trial(storage)
        assert trial.tensors() == trial.tensor_names()
        assert trial.tensors(collection="losses", step=0) == ["loss"]
        assert trial.tensors_matching_regex("^w") == trial.tensors_matching_regex(["^w"]) == ["w"]

    def test_members_of_a_collection_are_names_and_tensors_at_once(self, storage):
        trial = open_trial(storage)
        (loss,) = trial.tensors_in_collection("losses")
        assert loss == "loss"
        assert trial.tensor(loss).value(3) == loss.value(3) == 3.0
        assert loss.name == "loss"
        assert loss.steps() == [0, 3, 4, 6]
        assert loss.reduction_value(3, "mean", abs=True) == 3.0
        assert type(pickle.loads(pickle.dumps(loss))) is str
        assert copy.deepcopy(loss) == "loss"
        with pytest.raises(AttributeError):
            loss.nonsense

    def test_an_absent_tensor_is_named(self, storage):
        trial = open_trial(storage)
        assert not trial.has_tensor("zz")
        with pytest.raises(TensorUnavailable, match="Tensor zz was not saved"):
            trial.tensor("zz")
        assert trial.has_tensor("w")
        assert trial.tensor("w") is trial.tensor("w")

    def test_inputs_labels_and_predictions_come_in_order_of_their_numbers(self, storage):
        trial = open_trial(storage)
        assert [list(v) for v in trial.labels(0, EVAL)] == [[1.0], [3.0], [2.0]]
        assert [list(v) for v in trial.labels(4)] == [[1.0], [3.0], [2.0]]
        assert trial.labels(0, TRAIN) == trial.predictions(4) == trial.inputs(4) == []


class TestAsAValue:
    def test_trials_are_equal_by_name_and_path(self, storage):
        first, second = open_trial(storage), open_trial(storage)
        assert first == second
        assert hash(first) == hash(second)
        second.name = "another"
        assert first != second
        assert first != "a trial"

    def test_a_trial_shows_what_it_knows_without_looking_for_news(self, storage):
        trial = open_trial(storage)
        write_step(storage, 9)
        shown = repr(trial)
        assert "name=a trial" in shown
        assert "steps=[0, 3, 4, 6]" in shown
        assert "collections=['losses', 'picked']" in shown


@pytest.mark.parametrize("mode", [ModeKeys.GLOBAL, ModeKeys.TRAIN])
def test_a_negative_step_is_unavailable_at_once_with_the_reason(mode):
    trial = open_trial(a_run(steps=2))
    with pytest.raises(StepUnavailable, match=r"Step -1 .*: steps count from 0"):
        trial.tensor("loss").value(-1, mode)
    with pytest.raises(StepUnavailable, match="steps count from 0"):
        trial.wait_for_steps([-1], mode)
