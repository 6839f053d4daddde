"""Zooming in: tensors that are saved whole for some steps, on request while the training runs."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import smdebug
from smdebug import SaveConfig, modes
from smdebug.files.names import ZOOM_KEY
from smdebug.files.zoom_request import MOST_STEPS, ZoomRequest
from smdebug.saving.requests import zooming
from smdebug.storage import open_storage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial

KERNEL = np.arange(12, dtype=np.float32).reshape(4, 3)


def hook_at(storage, *, observes=True, **options):
    hook = smdebug.Hook(storage, look_for_stop=0, **options)
    hook.observes = observes
    return hook


def train(hook, steps, mode=modes.TRAIN, rank=0):
    for _ in range(steps):
        with hook.step(mode):
            hook.record("loss", 0.5)
            hook.record("dense/weight", KERNEL + int(hook.step) + rank)
            hook.record("gradient/dense/weight", KERNEL)
            hook.record("dense/bias", KERNEL[0])


def ask(storage, *tensors, **more):
    storage.write(ZOOM_KEY, json.dumps({"tensors": tensors, **more}).encode())


def saved_whole(storage, name="dense/weight"):
    trial = Trial("run", storage)
    return trial.tensor(name).steps() if trial.has_tensor(name) else []


@pytest.fixture
def storage():
    return MemoryStorage()


def test_named_tensors_are_saved_whole_for_the_next_consecutive_steps(storage):
    with hook_at(storage) as hook:
        train(hook, 25)
        ask(storage, "weight", steps=4)
        train(hook, 30)
    assert saved_whole(storage) == [30, 31, 32, 33]  # 30 is the next step at which anything is due
    assert saved_whole(storage, "gradient/dense/weight") == [30, 31, 32, 33]
    assert saved_whole(storage, "dense/bias") == []
    trial = Trial("run", storage)
    np.testing.assert_array_equal(trial.tensor("dense/weight").value(31), KERNEL + 31)
    assert trial.steps() == [*range(10), 10, 20, 30, 31, 32, 33, 40, 50, 54]


def test_steps_that_are_zoomed_into_are_measured_as_well(storage):
    with hook_at(storage) as hook:
        train(hook, 11)
        ask(storage, "^dense/weight$", steps=2)
        train(hook, 12)
    trial = Trial("run", storage)
    assert trial.observations.steps(kind="gradients") == [*range(10), 10, 20, 21]


def test_without_the_default_plan_only_what_is_named_is_added(storage):
    with hook_at(storage, save_config=SaveConfig(save_interval=5)) as hook:
        train(hook, 1)
        ask(storage, "bias", steps=3)
        train(hook, 12)
    assert saved_whole(storage, "dense/bias") == [5, 6, 7]
    assert saved_whole(storage, "loss") == [0, 5, 10]


def test_the_collection_of_zoomed_tensors_can_be_read_while_the_training_runs(storage):
    with hook_at(storage) as hook:
        train(hook, 1)
        ask(storage, "weight", steps=2)
        train(hook, 4)
        hook.flush()
        assert Trial("run", storage).tensor_names(collection="zoom") == [
            "dense/weight",
            "gradient/dense/weight",
        ]


def test_another_request_replaces_the_one_in_progress(storage):
    with hook_at(storage) as hook:
        train(hook, 5)
        ask(storage, "weight", steps=20)
        train(hook, 2)
        ask(storage, "bias", steps=2)
        train(hook, 10)
    assert saved_whole(storage) == [5, 6]
    assert saved_whole(storage, "dense/bias") == [7, 8]


def test_the_same_request_is_followed_once(storage):
    with hook_at(storage) as hook:
        train(hook, 1)
        ask(storage, "bias", steps=1)
        train(hook, 9)
        ask(storage, "bias", steps=1)
        train(hook, 15)
    assert saved_whole(storage, "dense/bias") == [1]


def test_steps_of_validation_in_between_are_not_counted(storage):
    with hook_at(storage) as hook:
        train(hook, 3)
        ask(storage, "bias", steps=4)
        train(hook, 2)
        train(hook, 3, modes.EVAL)
        train(hook, 5)
    assert saved_whole(storage, "dense/bias") == [3, 4, 8, 9]


def test_a_request_for_another_training_and_an_older_one_are_ignored(storage, capsys):
    ask(storage, "bias", steps=1)
    with hook_at(storage, run_id="mine") as hook:
        train(hook, 3)
        assert "existed before this training and is ignored" in capsys.readouterr().out
        ask(storage, "bias", steps=1, run_id="another", training_run=0)
        train(hook, 3)
        ask(storage, "bias", steps=1, run_id="mine", training_run=0)
        train(hook, 3)
    assert saved_whole(storage, "dense/bias") == [6]


def test_names_that_no_tensor_has_are_reported_once(storage, capsys):
    with hook_at(storage) as hook:
        train(hook, 1)
        ask(storage, "bias", "convolution", steps=2)
        train(hook, 8)
    output = capsys.readouterr().out
    assert output.count("No tensor has a name that matches convolution") == 1


def test_a_zoom_that_is_over_says_at_the_next_step_what_matched_nothing(storage, capsys):
    nowhere = [f"nowhere{number}" for number in range(7)]
    hook = hook_at(storage)
    train(hook, 1)
    ask(storage, "bias", *nowhere, steps=2)
    train(hook, 2)
    assert "No tensor has a name" not in capsys.readouterr().out
    train(hook, 1)
    output = capsys.readouterr().out
    hook.close()
    assert "matches nowhere0, nowhere1, nowhere2, nowhere3, nowhere4 and 2 more, so" in output
    assert saved_whole(storage, "dense/bias") == [1, 2]


def test_what_does_not_fit_into_a_step_is_left_out_and_said(storage, monkeypatch, capsys):
    monkeypatch.setattr(zooming, "MOST_BYTES", KERNEL.nbytes + KERNEL[0].nbytes)
    with hook_at(storage) as hook:
        train(hook, 1)
        ask(storage, "dense", steps=2)
        train(hook, 8)
    assert saved_whole(storage) == saved_whole(storage, "dense/bias") == [1, 2]
    assert saved_whole(storage, "gradient/dense/weight") == []
    output = capsys.readouterr().out
    assert output.count("Left out of the zoom") == 1
    assert "gradient/dense/weight" in output


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"^dense", "Expecting value"),
        (b"[]", "not a JSON object"),
        (b"{}", "1 to 100 patterns, not 0"),
        (b'{"tensors": [3]}', "must be a list of texts"),
        (b'{"tensors": ["a"], "steps": 0}', f"steps must be 1 to {MOST_STEPS}"),
        (b'{"tensors": ["a"], "steps": true}', f"steps must be 1 to {MOST_STEPS}"),
        (b'{"tensors": ["(a+)+$"]}', "(a+)+$"),
        (b'{"tensors": ["("]}', "("),
        (b"[" * 60_000, "nested too deeply"),
        (b" " * 70_000, "70000 bytes"),
    ],
)
def test_what_is_not_a_request_is_named_and_ignored(storage, content, problem, capsys):
    with hook_at(storage) as hook:
        train(hook, 1)
        storage.write(ZOOM_KEY, content)
        train(hook, 4)
    output = capsys.readouterr().out
    assert output.count("is not a zoom request and is ignored") == 1
    assert problem in output
    assert saved_whole(storage) == []


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_a_problem(data):
    with suppress(ValueError):
        assert ZoomRequest.parse(data).tensors


def test_a_request_is_read_as_it_was_written():
    request = ZoomRequest(("a", "b"), 7, "because", "finding-1", ("worker_1",), "run", 2)
    assert ZoomRequest.parse(request.encode()) == request
    assert ZoomRequest.parse(ZoomRequest(("a",)).encode()) == ZoomRequest(("a",))


def test_other_workers_save_what_is_named_only_if_they_are_named_too(tmp_path):
    place = str(tmp_path / "run")
    hooks = [hook_at(place, worker=rank, num_workers=2, run_id="r") for rank in range(2)]
    storage = open_storage(place)
    for rank, hook in enumerate(hooks):
        train(hook, 3, rank=rank)
    ask(storage, "dense/weight", steps=2)
    for rank, hook in enumerate(hooks):
        train(hook, 10, rank=rank)
    ask(storage, "dense/weight", steps=2, workers=["worker_1"])
    for rank, hook in enumerate(hooks):
        train(hook, 110, rank=rank)
    for hook in reversed(hooks):
        hook.close()
    weight = Trial("run", storage).tensor("dense/weight")
    assert {step: weight.workers(step) for step in weight.steps()} == {
        3: ["worker_0"],
        4: ["worker_0"],
        20: ["worker_1"],
        21: ["worker_1"],
    }
    np.testing.assert_array_equal(weight.value(21, worker="worker_1"), KERNEL + 22)


def test_a_hook_that_looks_for_no_stop_looks_for_no_zoom(storage):
    with smdebug.Hook(storage, look_for_stop=None, save_config=SaveConfig(save_interval=1)) as hook:
        train(hook, 1)
        ask(storage, "bias")
        train(hook, 4)
    assert saved_whole(storage, "dense/bias") == []
