"""Values, reductions and collections that the hook saves."""

import numpy as np
import pytest

import smdebug
from smdebug import CollectionKeys, ReductionConfig, SaveConfig
from smdebug.config.collection import Collection
from smdebug.exceptions import (
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.trials import create_trial
from tests.saving.saved_files import collections_of, index_of, names_at, saved_steps


def test_reductions_are_saved_under_their_names(out_dir):
    values = np.array([[3.0, -4.0], [0.0, 0.0]])
    wanted = ReductionConfig(["min", "median"], ["mean"], ["l1", "l2"], save_shape=True)
    with (
        smdebug.Hook(out_dir, include_collections=["weights"], reduction_config=wanted) as hook,
        hook.step(),
    ):
        hook.record("weight:0", values)
        values[:] = 0
    assert names_at(out_dir, 0) == [
        f"smdebug/reductions/{name}/weight" for name in ("min", "median", "l1", "l2", "abs_mean")
    ]
    assert index_of(out_dir, 0)["shape_payload"] == [
        {"tensorname": "weight:0", "originalname": "weight:0", "shape": [2, 2]}
    ]
    tensor = create_trial(str(out_dir)).tensor("weight")
    assert tensor.reduction_value(0, "l2") == 5
    assert tensor.reduction_value(0, "mean", abs=True) == 1.75


def test_large_tensors_are_reduced_without_a_copy(out_dir, monkeypatch):
    monkeypatch.setattr("smdebug.saving.recording.open_step.COPIED_FOR_REDUCTIONS", 100)
    values = np.full(1000, 2.0)
    wanted = ReductionConfig(["max", "mean"])
    with (
        smdebug.Hook(out_dir, include_collections=["weights"], reduction_config=wanted) as hook,
        hook.step(),
    ):
        hook.record("weight", values)
        assert hook.writer.size < 1000
        values[:] = 0
    assert create_trial(str(out_dir)).tensor("weight").reduction_value(0, "max") == 2


def test_value_and_shape_can_be_saved_together(out_dir):
    wanted = ReductionConfig(save_raw_tensor=True, save_shape=True)
    with (
        smdebug.Hook(out_dir, include_collections=["weights"], reduction_config=wanted) as hook,
        hook.step(),
    ):
        hook.record("weight", np.ones((2, 3)))
    tensor = create_trial(str(out_dir)).tensor("weight")
    assert tensor.value(0).shape == (2, 3)
    assert tensor.shape(0) == (2, 3)


def test_collections_may_be_configured_until_the_first_step(out_dir):
    with smdebug.Hook(out_dir, include_collections=["mine"]) as hook:
        mine = hook.get_collection("mine")
        mine.include("^my_")
        mine.save_config = SaveConfig(save_interval=2)
        hook.add_collection(Collection("losses", ["never"]))
        for _ in range(3):
            with hook.step():
                hook.record_all({"my_tensor": 1, "loss": 2})
    assert saved_steps(out_dir) == [0, 2]
    assert names_at(out_dir, 0) == ["my_tensor"]
    with pytest.raises(SMDebugTypeError):
        hook.add_collection("x")


def test_include_regex_saves_what_it_matches(out_dir):
    with smdebug.Hook(out_dir, include_regex=["relu"]) as hook, hook.step():
        hook.record_all({"relu_1": 1.0, "tanh": 1.0})
    assert names_at(out_dir, 0) == ["relu_1"]
    assert collections_of(out_dir)["collections"]["default"]["tensor_names"] == ["relu_1"]


def test_save_all_saves_all(out_dir):
    with smdebug.Hook(out_dir, save_all=True) as hook, hook.step():
        hook.record_all({"a": 1, "b": 2})
    assert names_at(out_dir, 0) == ["a", "b"]


def test_a_collection_without_tensors_draws_one_warning_and_stops_no_training(out_dir, capsys):
    with smdebug.Hook(out_dir, include_collections=["weight"]) as hook:
        hook.get_collection("gradient")
        for _ in range(3):
            with hook.step():
                hook.record("loss", 1.0)
    output = capsys.readouterr().out
    assert output.count("There is no collection weight, ") == 1
    assert output.count("There is no collection gradient, ") == 1
    assert "Did you mean weights?" in output
    assert 'hook.get_collection("weight").include("regex")' in output
    assert names_at(out_dir, 0) == ["loss"]


def test_asking_whether_something_is_saved(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=2)) as hook:
        assert not hook.should_save_tensor_or_collection("loss", "losses")
        with hook.step():
            assert hook.should_save_tensor_or_collection("x", CollectionKeys.LOSSES)
            assert hook.should_save_tensor_or_collection("loss", "nothing")
            assert not hook.should_save_tensor_or_collection("x", "nothing")
        with hook.step():
            assert not hook.should_save_tensor_or_collection("loss", "losses")


def test_whether_a_hook_was_configured_at_all(out_dir):
    assert smdebug.Hook(out_dir).has_default_hook_configuration()
    assert not smdebug.Hook(out_dir, include_collections=["weights"]).has_default_configuration()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"reduction_config": "min"}, SMDebugTypeError),
        ({"save_config": 10}, SMDebugTypeError),
        ({"save_all": "perhaps"}, SMDebugValueError),
        ({"checksum": "md5"}, SMDebugValueError),
        ({"num_workers": 0}, SMDebugValueError),
        ({"include_collections": 3}, SMDebugValueError),
    ],
)
def test_a_wrong_configuration_is_refused_by_the_constructor(out_dir, wrong, error):
    with pytest.raises(error):
        smdebug.Hook(out_dir, **wrong)
