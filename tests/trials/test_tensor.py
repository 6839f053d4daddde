from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import (
    DamagedFile,
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.progress import StepState
from tests.trials.writing import (
    CountingStorage,
    begin,
    end,
    large,
    open_trial,
    write_step,
)

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
AVAILABLE, UNAVAILABLE = StepState.AVAILABLE, StepState.UNAVAILABLE
NOT_YET = StepState.NOT_YET_AVAILABLE


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
        with pytest.raises(TensorUnavailableForStep, match="You might want to query for the reductions"):
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

    def test_a_shape_that_was_not_saved_is_reported_as_missing(self):
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

    def test_a_worker_that_has_not_saved_a_step_yet_is_looked_for_again(self):
        storage = begin(MemoryStorage(), workers=2)
        write_step(storage, 0, {"w": 1.0}, worker=0)
        w = open_trial(storage).tensor("w")
        assert w.value(0) == 1.0
        with pytest.raises(InvalidWorker, match="worker_1"):
            w.value(0, worker="worker_1")
        write_step(storage, 0, {"w": 2.0}, worker=1)
        assert w.value(0, worker="worker_1") == 2.0

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
