"""Numbers that a training logs: where they are kept, and what is refused."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.saving.hooks import singleton
from smdebug.saving.hooks.logged import checked_step
from smdebug.trials import create_trial

EVERY_STEP = smdebug.SaveConfig(save_interval=1)


@pytest.fixture(autouse=True)
def no_hook_of_this_process():
    singleton.del_hook()
    yield
    singleton.del_hook()


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "run")


def trained(hook, steps=12):
    for step in range(steps):
        with hook.step(smdebug.modes.TRAIN):
            hook.record("loss", 1.0 / (1 + step))


def series(place, name):
    found = create_trial(place).series(name)
    return list(zip(found.steps.tolist(), found.values.tolist(), strict=True))


def test_a_number_is_a_series_at_the_step_that_ran_last(place):
    with smdebug.Hook(place) as hook:
        trained(hook, 5)
        hook.log(accuracy=0.5)
        trained(hook, 30)
        smdebug.log({"accuracy": np.float32(0.75), "val/f1": 1}, step=None)
    assert series(place, "accuracy") == [(4, 0.5), (34, 0.75)]
    assert series(place, "val/f1") == [(34, 1.0)]
    assert len(series(place, "loss")) == 35, "what is logged is no step"


def test_numbers_logged_after_the_last_step_keep_those_that_its_record_has(place):
    with smdebug.Hook(place) as hook:
        for step in range(4):
            trained(hook, 1)
            hook.log(speed=step)
        hook.flush()
    assert series(place, "speed") == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_number_may_name_its_step(place):
    with smdebug.Hook(place) as hook:
        trained(hook)
        hook.log(accuracy=0.5, step=np.int64(3))
        hook.log(accuracy=0.25, step=1)
    assert series(place, "accuracy") == [(1, 0.25), (3, 0.5)]


def test_a_number_named_for_the_training_is_of_the_training_after_an_evaluation(place):
    with smdebug.Hook(place) as hook:
        trained(hook, 5)
        for _ in range(3):
            with hook.step(smdebug.modes.EVAL):
                hook.record("loss", 0.5)
        hook.log({"train/loss": 0.25, "trained_on": 160, "accuracy": 0.75})
        hook.log(train_loss=0.125, step=2)
    trial = create_trial(place)
    of_mode = {
        (name, mode.name): found.steps.tolist()
        for name in ("train/loss", "trained_on", "accuracy", "train_loss")
        for mode in (smdebug.modes.TRAIN, smdebug.modes.EVAL)
        if len(found := trial.series(name).of(mode))
    }
    assert of_mode == {
        ("train/loss", "TRAIN"): [7],  # the last step of all, as this hook counts
        ("trained_on", "TRAIN"): [7],
        ("accuracy", "EVAL"): [7],
        ("train_loss", "TRAIN"): [2],
    }


def test_an_evaluation_alone_has_no_step_of_training_for_a_number_named_so(place):
    with smdebug.Hook(place) as hook:
        with hook.step(smdebug.modes.EVAL):
            hook.record("loss", 0.5)
        hook.log(train_size=60)
    found = create_trial(place).series("train_size")
    assert (len(found), len(found.of(smdebug.modes.EVAL))) == (1, 1)


def test_what_is_logged_before_the_first_step_belongs_to_it(place):
    smdebug.log(before_the_hook=1.0)
    smdebug.log(before_the_hook=2.0)
    with smdebug.Hook(place) as hook:
        hook.log(before_the_step=3.0)
        trained(hook)
    assert series(place, "before_the_hook")[-1] == (0, 2.0)
    assert series(place, "before_the_step") == [(0, 3.0)]


def test_with_chosen_tensors_a_number_is_a_scalar(place):
    with smdebug.Hook(place, save_config=EVERY_STEP, include_collections=["losses"]) as hook:
        hook.log(early=1.0)
        trained(hook, 2)
        hook.log(accuracy=0.5)
    trial = create_trial(place)
    assert trial.tensor("scalar/accuracy").value(1) == 0.5
    assert trial.tensor("scalar/early").value(0) == 1.0


def test_the_loss_of_a_hook_that_records_its_own_stays_apart(place):
    with smdebug.Hook(place) as hook:
        hook.own_series = frozenset({"loss"})  # as the hooks of frameworks
        trained(hook)
        hook.log(loss=7.0)
    assert series(place, "logged/loss") == [(11, 7.0)]
    assert max(value for _, value in series(place, "loss")) == 1.0


def test_what_is_not_finite_is_kept(place):
    with smdebug.Hook(place) as hook:
        trained(hook)
        hook.log(perplexity=math.inf)
    assert series(place, "perplexity") == [(11, math.inf)]


@pytest.mark.parametrize(
    ("numbers", "step", "error", "message"),
    [
        ({"accuracy": "0.9"}, None, SMDebugTypeError, "must be one real number to be logged, not '0.9'"),
        ({"accuracy": np.ones(3)}, None, SMDebugTypeError, "not a ndarray of shape (3,)"),
        ({"accuracy": None}, None, SMDebugTypeError, "not None"),
        ({"accuracy": 1j}, None, SMDebugTypeError, "one real number"),
        ({3: 0.5}, None, SMDebugTypeError, "has a name"),
        ({" ": 0.5}, None, SMDebugTypeError, "has a name"),
        ({"learning_rate/0/0": 0.5}, None, SMDebugValueError, "another name"),
        ({"system/cpu": 0.5}, None, SMDebugValueError, "another name"),
        ({"accuracy": 0.5}, "3", SMDebugTypeError, "step is the number of a training step, not '3'"),
        ({"accuracy": 0.5}, -1, SMDebugValueError, "from 0 on, not -1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_hook", [True, False])
def test_what_is_no_number_is_refused_with_or_without_a_hook(place, numbers, step, error, message, has_hook):
    hook = smdebug.Hook(place) if has_hook else None
    with pytest.raises(error) as refused:
        smdebug.log(numbers, step=step)
    assert message in str(refused.value)
    if hook is not None:
        hook.close()


def test_after_the_end_of_the_run_nothing_is_logged_and_nothing_fails(place):
    hook = smdebug.Hook(place)
    trained(hook)
    hook.close()
    hook.log(accuracy=0.5)
    assert "accuracy" not in create_trial(place).observations.series_names()


def test_numbers_that_no_training_took_are_named_when_the_process_ends():
    code = "import smdebug; smdebug.log(accuracy=0.5); smdebug.log(f1=1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "smdebug.log: 2 calls (accuracy, f1) were not saved" in done.stdout


def test_the_steps_of_a_training_are_whole_numbers_from_0_on():
    assert (checked_step(None), checked_step(0), checked_step(np.int64(7))) == (None, 0, 7)
    with pytest.raises(SMDebugValueError, match="from 0 on, not -1"):
        checked_step(-1)
    with pytest.raises(SMDebugTypeError, match="not '3'"):
        checked_step("3")
