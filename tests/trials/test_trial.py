from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from smdebug.analysis.utils import no_refresh
from smdebug.config.collection import Collection
from smdebug.exceptions import (
    AccessDenied,
    DamagedFile,
    InvalidWorker,
    NoMoreData,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.progress import StepState
from tests.trials.writing import (
    CountingStorage,
    StoppedClock,
    a_run,
    begin,
    end,
    large,
    open_trial,
    write_step,
)

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
AVAILABLE, UNAVAILABLE = StepState.AVAILABLE, StepState.UNAVAILABLE
NOT_YET = StepState.NOT_YET_AVAILABLE


@pytest.fixture
def storage() -> MemoryStorage:
    """Two training steps, one of evaluation, one without a mode, by two workers; going on."""
    storage = MemoryStorage()
    collections = {"losses": {"include_regex": ["loss"]}, "picked": {"tensor_names": ["w", "zz"]}}
    begin(storage, 2, collections)
    for worker in (0, 1):
        w = np.array([[3.0, -4.0]]) + worker
        for step, mode, mode_step in ((0, TRAIN, 0), (3, TRAIN, 3), (4, EVAL, 0), (6, GLOBAL, 6)):
            tensors = {"w": w, "loss": float(step), "smdebug/reductions/abs_max/w": 4.0}
            if mode is EVAL:
                tensors = {
                    "loss": float(step),
                    "labels": [1.0],
                    "labels_10": [2.0],
                    "labels_2": [3.0],
                }
            write_step(storage, step, tensors, worker=worker, mode=mode, mode_step=mode_step)
    return storage


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
        clock = StoppedClock(
            lambda: write_step(storage, 7), lambda: write_step(storage, 7, worker=1)
        )
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
        assert trial.last_complete_step == 4
        assert trial.last_index_token == "index/000000000/000000000004_worker_1.json"
        assert trial.steps() == [0, 1, 2, 3, 4]

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


class TestTensor:
    def test_values_come_by_step_mode_and_worker(self, storage):
        w = open_trial(storage).tensor("w")
        assert w.value(0).tolist() == [[3.0, -4.0]]
        assert w.value(0, worker="worker_1").tolist() == [[4.0, -3.0]]
        assert w.value(3, TRAIN).tolist() == w.value(3, mode="train").tolist() == [[3.0, -4.0]]
        assert list(w.values()) == [0, 3, 6]
        assert list(w.values(TRAIN, "worker_1")) == [0, 3]
        assert w.workers(0) == ["worker_0", "worker_1"]
        assert w.steps() == [0, 3, 6]
        assert w.shape(0) == (1, 2)
        assert w.original_name is None

    def test_prev_steps_includes_the_step_itself(self, storage):
        w = open_trial(storage).tensor("w")
        assert w.prev_steps(5, 1) == [3]
        assert w.prev_steps(6, 2) == [3, 6]
        assert w.prev_steps(6) == w.prev_steps(6, 0) == [0, 3, 6]
        assert w.prev_steps(2, 5, TRAIN) == [0]
        assert w.prev_steps(6, -1) == []

    def test_a_saved_reduction_wins_and_others_are_computed(self, storage):
        w = open_trial(storage).tensor("w")
        assert w.reduction_values(0) == {("max", True): np.array([4.0])}
        assert w.reduction_value(0, "max", abs=True) == np.array([4.0])
        assert w.reduction_value(0, "max") == 3.0
        assert w.reduction_value(0, "l2", worker="worker_1") == 5.0
        with pytest.raises(SMDebugValueError, match="no reduction 'foo'"):
            w.reduction_value(0, "foo")

    def test_reductions_of_a_name_with_a_number_are_found_under_it(self):
        storage = begin(MemoryStorage())
        write_step(
            storage,
            0,
            {"smdebug/reductions/l2/w": 1.0, "smdebug/reductions/l2/v": 2.0},
            shapes={"w:0": (2,)},
        )
        trial = open_trial(storage)
        assert trial.tensor("w:0").reduction_value(0, "l2") == 1.0
        assert trial.tensor("w").reduction_value(0, "l2") == 1.0
        with pytest.raises(
            TensorUnavailableForStep, match="You might want to query for the reductions"
        ):
            trial.tensor("w:0").value(0)

    def test_a_tensor_with_shape_and_value_has_both(self):
        storage = begin(MemoryStorage())
        write_step(storage, 0, {"w": np.zeros((2, 3))}, shapes={"w": (2, 3), "v": (7,)})
        trial = open_trial(storage)
        assert trial.tensor("w").value(0).shape == trial.tensor("w").shape(0) == (2, 3)
        assert trial.tensor("v").shape(0) == (7,)
        assert trial.tensor("v").original_name == "v"
        with pytest.raises(TensorUnavailableForStep):
            trial.tensor("v").value(0)

    def test_a_shape_that_was_not_saved_is_said_to_be_missing(self):
        storage = begin(MemoryStorage())
        write_step(storage, 0, {"smdebug/reductions/l2/w": 1.0})
        with pytest.raises(ShapeUnavailableForStep):
            open_trial(storage).tensor("w").shape(0)

    def test_the_first_worker_that_has_the_value_gives_it(self):
        storage = begin(MemoryStorage(), workers=2)
        write_step(storage, 0, {"loss": 1.0}, worker=0)
        write_step(storage, 0, {"w": 2.0}, worker=1)
        w = open_trial(storage).tensor("w")
        assert w.value(0) == 2.0
        assert w.workers(0) == ["worker_1"]
        with pytest.raises(InvalidWorker, match="worker_0"):
            w.value(0, worker="worker_0")

    def test_what_is_not_there_says_whether_it_may_come(self, storage):
        trial = open_trial(storage)
        w = trial.tensor("w")
        with pytest.raises(TensorUnavailableForStep, match="tensor w is not available for step 4"):
            w.value(4)
        with pytest.raises(StepUnavailable):
            w.value(5)
        with pytest.raises(StepNotYetAvailable):
            w.value(9)
        with pytest.raises(TensorUnavailableForStep):
            w.workers(9)
        with pytest.raises(StepNotYetAvailable):
            w.reduction_values(9)
        end(storage)
        with pytest.raises(StepUnavailable):
            w.value(9)
        with pytest.raises(SMDebugNotImplementedError):
            w.step(0)

    def test_an_incomplete_step_can_be_read(self, storage):
        write_step(storage, 8, {"w": [7.0]})
        w = open_trial(storage).tensor("w")
        assert w.value(8) == 7.0
        assert w.steps() == [0, 3, 6]
        assert w.steps(show_incomplete_steps=True) == [0, 3, 6, 8]

    def test_a_record_of_another_tensor_than_the_index_says_is_damaged(self, storage):
        key, index = names.event_key(9, "worker_0"), names.index_key(9, "worker_0")
        write_step(storage, 9, {"a": 1.0, "b": 2.0})
        storage.write(index, storage.read(index).replace(b'"b"', b'"a"'))
        trial = open_trial(storage)
        with pytest.raises(DamagedFile, match=key):
            trial.tensor("a").value(9)

    def test_what_a_caller_does_to_a_value_stays_with_him(self):
        for storage in (MemoryStorage(), CountingStorage()):
            begin(storage)
            write_step(storage, 0, {"small": [1.0, 2.0], "large": large(3.0)})
            trial = open_trial(storage)
            for name in ("small", "large", "small", "large"):
                value = trial.tensor(name).value(0)
                assert value.flags.writeable
                assert value[0] in (1.0, 3.0)
                value += 1

    def test_it_shows_its_name(self, storage):
        assert repr(open_trial(storage).tensor("w")) == "<Tensor 'w' of trial 'a trial'>"


class TestLookingForNews:
    def test_queries_see_what_has_come_since(self):
        storage = a_run(1)
        trial = open_trial(storage)
        loss = trial.tensor("loss")
        write_step(storage, 1, {"loss": 1.0, "new": 2.0}, mode=TRAIN)
        assert loss.steps() == trial.steps() == [0, 1]
        assert trial.tensor("new").value(1) == 2.0
        assert list(trial.modes()) == [TRAIN]

    def test_a_value_of_a_new_step_is_looked_for(self):
        storage = a_run(1)
        loss = open_trial(storage).tensor("loss")
        write_step(storage, 1)
        assert loss.value(1) == 1.0

    def test_without_refresh_nothing_is_asked_of_the_storage(self):
        storage = CountingStorage()
        begin(storage)
        write_step(storage, 0)
        trial = open_trial(storage)
        trial.tensor("loss").value(0)
        storage.asked.clear()
        with no_refresh(trial):
            write_step(storage, 1)
            assert trial.steps() == [0]
            assert trial.has_passed_step(1) is NOT_YET
            with pytest.raises(StepNotYetAvailable):
                trial.tensor("loss").value(1)
            trial.tensor_names(), trial.workers(), trial.collections(), trial.modes()
        assert storage.asked == []
        assert trial.steps() == [0, 1]

    def test_a_refresh_asks_for_what_is_new_and_no_more(self):
        storage = CountingStorage()
        begin(storage)
        for step in range(5):
            write_step(storage, step)
        trial = open_trial(storage)
        write_step(storage, 5)
        storage.asked.clear()
        trial.steps()
        assert storage.asked == [
            ("exists", names.END_MARKER),
            ("list", names.INDEX_FOLDER),
            ("read", names.index_key(5, "worker_0")),
        ]

    def test_files_of_open_steps_are_read_once(self):
        storage = CountingStorage()
        begin(storage, workers=2)
        for step in range(4):
            write_step(storage, step, worker=0)
        trial = open_trial(storage)
        write_step(storage, 4, worker=0)
        storage.asked.clear()
        assert trial.steps(show_incomplete_steps=True) == [0, 1, 2, 3, 4]
        assert storage.count("read") == 1

    def test_the_last_look_comes_a_moment_after_the_end_marker(self):
        storage = a_run(2, workers=2)
        clock = StoppedClock(lambda: write_step(storage, 2, worker=1))
        trial = open_trial(storage, clock, end_seconds=5.0)
        write_step(storage, 2, worker=0)
        end(storage)
        assert trial.steps() == [0, 1, 2]
        assert trial.tensor("loss").workers(2) == ["worker_0", "worker_1"]
        assert clock.time == 5.0
        assert trial.loaded_all_steps

    def test_an_ended_and_complete_run_is_opened_without_waiting_and_asked_for_nothing_more(self):
        storage = CountingStorage()
        begin(storage)
        write_step(storage, 0)
        end(storage)
        clock = StoppedClock()
        trial = open_trial(storage, clock)
        storage.asked.clear()
        assert trial.loaded_all_steps
        assert trial.steps() == [0]
        assert storage.asked == []
        assert clock.time == 0

    def test_nothing_is_added_under_the_hands_of_a_reader(self):
        storage = a_run(3)
        trial = open_trial(storage)
        steps = trial.steps()
        write_step(storage, 3)
        trial.steps()
        assert steps == [0, 1, 2]


class TestDamage:
    def test_one_damaged_index_file_is_left_out_and_reported_once(self, storage, capsys):
        key = names.index_key(3, "worker_1")
        storage.write(key, b"{")
        trial = open_trial(storage)
        trial.steps()
        trial.refresh_data()
        assert trial.steps() == [0, 3, 4, 6]
        assert list(trial.damaged_files) == [key]
        assert trial.tensor("w").workers(3) == ["worker_0"]
        assert capsys.readouterr().out.count("Skipped a damaged index file") == 1

    def test_a_damaged_file_that_is_replaced_in_time_is_read(self):
        storage = a_run(2)
        good = storage.read(names.index_key(1, "worker_0"))
        storage.write(names.index_key(1, "worker_0"), good[:40])
        trial = open_trial(storage)
        assert trial.steps() == [0]
        storage.write(names.index_key(1, "worker_0"), good)
        assert trial.steps() == [0, 1]
        assert trial.damaged_files == {}

    def test_an_odd_name_among_the_index_files_is_reported(self, storage):
        storage.write("index/000000000/notes.json", b"{}")
        storage.write("index/000000000/readme.txt", b"")
        assert list(open_trial(storage).damaged_files) == ["index/000000000/notes.json"]

    def test_an_index_file_that_points_outside_the_run_is_left_out(self, storage):
        key = names.index_key(6, "worker_0")
        storage.write(key, storage.read(key).replace(b'"events/', b'"../events/'))
        trial = open_trial(storage)
        assert key in trial.damaged_files
        assert trial.tensor("w").workers(6) == ["worker_1"]

    def test_a_flipped_bit_in_an_event_file_names_file_tensor_and_step(self, storage):
        key = names.event_key(3, "worker_0")
        data = bytearray(storage.read(key))
        data[data.index(np.float64(-4).tobytes())] ^= 1
        storage.write(key, bytes(data))
        with pytest.raises(DamagedFile, match=rf"Tensor w in {key} \(step 3\)"):
            open_trial(storage).tensor("w").value(3)

    def test_an_event_file_that_ends_too_early_is_damaged(self, storage):
        key = names.event_key(3, "worker_0")
        storage.write(key, storage.read(key)[:20])
        with pytest.raises(DamagedFile):
            open_trial(storage).tensor("w").value(3)

    def test_a_missing_event_file_is_waited_for(self):
        storage = a_run(1)
        write_step(storage, 1, {"w": 5.0}, events=False)
        clock = StoppedClock(lambda: None, lambda: write_step(storage, 1, {"w": 5.0}, index=False))
        assert open_trial(storage, clock).tensor("w").value(1) == 5.0
        assert clock.time == 4.0

    def test_a_missing_event_file_is_not_waited_for_forever(self):
        storage = a_run(1)
        write_step(storage, 1, {"w": 5.0}, events=False)
        clock = StoppedClock()
        trial = open_trial(storage, clock, event_file_attempts=7)
        with pytest.raises(TensorUnavailableForStep):
            trial.tensor("w").value(1)
        assert clock.time == 14.0

    @pytest.mark.parametrize("happened", ["a later file", "the end"])
    def test_a_missing_event_file_that_cannot_come_any_more_is_said_at_once(self, happened):
        storage = a_run(1)
        write_step(storage, 1, {"w": 5.0}, mode=TRAIN, mode_step=0, events=False)
        if happened == "the end":
            end(storage)
        else:
            write_step(storage, 2)
        clock = StoppedClock()
        with pytest.raises(TensorUnavailableForStep, match=r"tensor w .* step 0 with mode TRAIN"):
            open_trial(storage, clock).tensor("w").value(1)
        assert clock.time == 0

    def test_what_may_not_be_read_is_said_at_once(self, storage):
        class Forbidden(MemoryStorage):
            def list(self, prefix, start_after=None):
                raise AccessDenied(prefix, "no")

        with pytest.raises(AccessDenied):
            open_trial(Forbidden())

    def test_an_index_without_entries_does_not_count(self, storage):
        storage.write(
            names.index_key(7, "worker_0"),
            b'{"meta": {"mode": "TRAIN", "mode_step": 7}, "tensor_payload": [], "shape_payload": []}',
        )
        trial = open_trial(storage)
        assert 7 not in trial.steps(show_incomplete_steps=True)

    def test_events_without_an_index_are_pointed_out(self, capsys):
        storage = begin(MemoryStorage())
        write_step(storage, 0, index=False)
        end(storage)
        assert open_trial(storage).steps() == []
        assert "event files but no index files" in capsys.readouterr().out


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
