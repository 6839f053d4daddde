"""Scalars and tensors that a user records."""

import logging

import numpy as np
import pytest

import smdebug
from smdebug import ReductionConfig, SaveConfig, modes
from smdebug.exceptions import (
    SMDebugTypeError,
)
from smdebug.trials import create_trial
from tests.saving.saved_files import collections_of, index_of, names_at, saved_steps
from tests.support.faulty_storage import FaultyStorage, failing


def test_a_scalar_is_saved_at_its_own_step_whatever_the_save_config(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=10)) as hook:
        for step in range(4):
            with hook.step(modes.TRAIN):
                if step == 2:
                    hook.save_scalar("speed", 7, timestamp=1600000000)
    trial = create_trial(str(out_dir))
    assert trial.tensor("scalar/speed").steps() == [2]
    assert trial.tensor("scalar/speed").value(2) == [7]
    assert not any(
        "scalar/speed" in c["tensor_names"] for c in collections_of(out_dir)["collections"].values()
    )


def test_a_scalar_saved_between_steps_belongs_to_the_step_before(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=2)) as hook:
        hook.save_scalar("before", 0)
        for _ in range(2):
            with hook.step(modes.EVAL):
                hook.record("loss", 1.0)
        hook.set_mode(modes.TRAIN)
        hook.save_scalar("after an unsaved step", 1)
        with hook.step():
            hook.record("loss", 2.0)
        hook.save_scalar("after a saved step", 2)
        hook.save_tensor("tensor after a saved step", [1, 2])

    assert names_at(out_dir, 0) == ["scalar/before", "loss"]
    assert names_at(out_dir, 1) == ["scalar/after an unsaved step"]
    assert index_of(out_dir, 1)["meta"]["mode"] == "EVAL"
    assert names_at(out_dir, 2) == [
        "loss",
        "scalar/after a saved step",
        "tensor after a saved step",
    ]
    assert saved_steps(out_dir) == [0, 1, 2]
    trial = create_trial(str(out_dir))
    assert trial.tensor("loss").value(2) == [2.0]
    assert trial.tensor("scalar/after a saved step").value(0, mode=modes.TRAIN) == [2]
    assert trial.tensor("tensor after a saved step").value(2).tolist() == [1, 2]


@pytest.mark.parametrize("wrong", [[1, 2], "text", "1", 1j, object(), np.zeros(0), None])
def test_a_scalar_is_one_number(out_dir, wrong):
    with smdebug.Hook(out_dir) as hook, hook.step(), pytest.raises(SMDebugTypeError, match="speed"):
        hook.save_scalar("speed", wrong)


def test_a_custom_tensor_goes_to_every_named_collection(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=5)) as hook:
        for step in range(3):
            with hook.step():
                if step == 1:
                    hook.save_tensor("mine", np.ones(2), ["weights", "new", hook.get_collection("biases")])
                    hook.save_tensor("other", 3.5)
    assert names_at(out_dir, 1) == ["mine", "other"]
    members = {n: c["tensor_names"] for n, c in collections_of(out_dir)["collections"].items()}
    assert members["weights"] == members["new"] == members["biases"] == ["mine"]
    assert members["default"] == ["other"]


def test_a_custom_tensor_is_written_raw_where_the_collection_wants_reductions(out_dir):
    with smdebug.Hook(out_dir, reduction_config=ReductionConfig(["min"])) as hook, hook.step():
        hook.save_tensor("mine", np.ones(2), "weights")
    assert names_at(out_dir, 0) == ["mine"]


def test_what_cannot_be_saved_is_left_out_with_a_warning(out_dir, capsys):
    with smdebug.Hook(out_dir, save_all=True) as hook, hook.step():
        hook.save_tensor("odd", object())
        hook.record("other", object())
        hook.record("other", object())
        hook.record("object array", np.array([object()]))
        hook.record("dates", np.array(["2026-01-01"], dtype="datetime64[D]"))
        hook.record("records", np.zeros(2, dtype=[("a", "f4")]))
        hook.record("good", 1)
    output = capsys.readouterr().out
    assert output.count("Tensor odd is not saved") == 1
    assert output.count("Tensor other is not saved") == 1
    assert names_at(out_dir, 0) == ["good"]


def test_recording_outside_of_a_step_is_reported(out_dir, capsys):
    with smdebug.Hook(out_dir) as hook:
        hook.record("loss", 1.0)
    assert "no step runs" in capsys.readouterr().out


def test_empty_tensors_are_not_written_but_belong_to_their_collections(out_dir):
    with smdebug.Hook(out_dir, include_collections=["losses"]) as hook, hook.step():
        hook.record("loss", np.zeros(0))
        hook.record("my_loss", 1.0)
    assert names_at(out_dir, 0) == ["my_loss"]
    assert collections_of(out_dir)["collections"]["losses"]["tensor_names"] == ["loss", "my_loss"]


def test_values_that_come_after_a_step_that_was_lost_are_lost_with_it(log_records):
    storage = FaultyStorage(
        lambda number, call, key: (
            failing() if call == "write" and "000000000000_worker_0.json" in key else None
        )
    )
    with smdebug.Hook(storage, save_config=SaveConfig(save_interval=1)) as hook:
        for step in range(2):
            with hook.step():
                hook.record("loss", float(step))
            hook.save_tensor("late", np.array([step]))
    trial = create_trial(storage.storage)
    assert trial.steps() == [1]
    assert trial.tensor("late").value(1) == [1]
    (error,) = [r.getMessage() for r in log_records if r.levelno == logging.ERROR]
    assert "wrote 1 steps" in error
    assert "Lost: 1 (0)" in error
