"""The hook, driven as a training loop drives it: its steps, modes and end."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import smdebug
from smdebug import SaveConfig, SaveConfigMode, modes
from smdebug.exceptions import (
    RunEnded,
    SMDebugValueError,
)
from smdebug.saving.planning.step_clock import StepClock
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial
from tests.saving.saved_files import EVERY_STEP, has_ended, index_of, names_at, saved_steps


class StepOfLoop(NamedTuple):
    """What a training calls around one of its steps."""

    mode: smdebug.modes | None
    sets_mode: bool
    reads_clock: bool
    saves_scalar: bool
    ends: bool


STEPS_OF_LOOP = st.builds(
    StepOfLoop,
    st.sampled_from([None, modes.TRAIN, modes.EVAL]),
    *(st.booleans() for _ in range(4)),
)


OFTEN_NOT_DUE = SaveConfig(
    {
        modes.TRAIN: SaveConfigMode(7),
        modes.EVAL: SaveConfigMode(4, 3),
        modes.GLOBAL: SaveConfigMode(5),
    }
)


@given(st.lists(STEPS_OF_LOOP, max_size=40))
def test_steps_at_which_nothing_is_due_are_counted_like_all_others(loop):
    hook = smdebug.Hook(storage := MemoryStorage(), save_config=OFTEN_NOT_DUE)
    clock, expected_names = StepClock(), {}
    for step in loop:
        clock = clock.in_mode(step.mode or clock.mode).next()
        if step.sets_mode and step.mode is not None:
            hook.set_mode(step.mode)
            hook.begin_step()
        else:
            hook.begin_step(step.mode)
        hook.record("loss", float(clock.step))
        if OFTEN_NOT_DUE.should_save_step(clock.mode, clock.mode_step):
            expected_names[clock.step] = {"loss"}
        if step.saves_scalar:
            hook.save_scalar("seen", clock.step)
            expected_names.setdefault(clock.step, set()).add("scalar/seen")
        if step.reads_clock:
            counted = (hook.step, hook.mode, hook.mode_steps)
            assert counted == (clock.step, clock.mode, clock.mode_steps)
        if step.ends:
            hook.end_step()
    hook.close()

    if expected_names:
        trial = create_trial(storage)
        assert {step: set(trial.tensor_names(step=step)) for step in trial.steps()} == expected_names
        for step, names in expected_names.items():
            assert [trial.tensor(name).value(step) for name in names] == [step] * len(names)


def test_tensors_offered_while_nothing_is_due_cause_no_warning(out_dir, caplog):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=5)) as hook:
        for _ in range(5):
            with hook.step():
                hook.record("loss", 1.0)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_run_saved_by_any_loop_is_read_back(out_dir):
    weights = np.arange(6.0).reshape(2, 3)
    with smdebug.Hook(
        out_dir, include_collections=["weights"], save_config=SaveConfig(save_interval=2)
    ) as hook:
        for step in range(5):
            with hook.step(modes.TRAIN):
                hook.record("loss", 1 / (step + 1))
                hook.record_all({"layer/weight": weights, "gradient/layer": weights})
            weights += 1

    trial = create_trial(str(out_dir))
    assert trial.steps(mode=modes.TRAIN) == [0, 2, 4]
    assert trial.tensor_names() == ["layer/weight", "loss"]
    assert trial.tensor("loss").value(4, mode=modes.TRAIN) == [0.2]
    first = trial.tensor("layer/weight").value(2, mode=modes.TRAIN)
    np.testing.assert_array_equal(first, np.arange(6.0).reshape(2, 3) + 2)
    assert trial.loaded_all_steps


def test_a_recorded_array_may_be_changed_at_once(out_dir):
    values = np.zeros(1000)
    with smdebug.Hook(out_dir, save_all=True, save_config=EVERY_STEP) as hook:
        for step in range(20):
            values[:] = step
            with hook.step():
                hook.record("values", values)
                values[:] = -1
    trial = create_trial(str(out_dir))
    assert all((trial.tensor("values").value(step) == step).all() for step in range(20))


class Untouchable:
    """Fails on every access."""

    @property
    def __array__(self):
        raise AssertionError("nobody wants this value")


def test_unwanted_tensors_are_not_even_read(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=2)) as hook:
        with hook.step():
            assert hook.wants("loss")
            assert not hook.wants("weight")
            hook.record("weight", Untouchable())
        with hook.step():
            assert not hook.wants("loss")
            hook.record_all({"loss": Untouchable()})
        assert not hook.wants("loss")


def test_modes_count_their_own_steps(out_dir):
    with smdebug.Hook(out_dir, save_config=EVERY_STEP) as hook:
        assert (hook.step, hook.mode, hook.mode_steps) == (-1, modes.GLOBAL, {modes.GLOBAL: -1})
        for mode in (modes.TRAIN, modes.TRAIN, modes.EVAL, modes.TRAIN):
            with hook.step(mode):
                hook.record("loss", 1.0)
        hook.set_mode(modes.PREDICT)
        assert hook.mode is modes.PREDICT
        assert hook.step == 3
        assert hook.mode_steps == {
            modes.TRAIN: 2,
            modes.EVAL: 0,
            modes.GLOBAL: 3,
            modes.PREDICT: -1,
        }
    meta = index_of(out_dir, 3)["meta"]
    assert (meta["mode"], meta["mode_step"]) == ("TRAIN", 2)


def test_a_mode_is_a_mode(out_dir):
    with pytest.raises(SMDebugValueError, match=r"modes\.TRAIN"):
        smdebug.Hook(out_dir).set_mode("TRAIN")


def test_the_number_of_a_step_can_be_kept_without_the_hook(out_dir):
    hook = smdebug.Hook(out_dir)
    hook.step()
    kept = pickle.loads(pickle.dumps({"step": hook.step}))
    assert kept == {"step": 0}
    assert type(kept["step"]) is int
    assert type(copy.deepcopy(hook.step)) is int
    assert hook.step + 1 == 1
    hook.close()


@pytest.mark.parametrize("worker", ["", "../x", "a/b", "_device", "a b", 1.5, None])
def test_a_worker_is_a_rank_or_a_name(out_dir, worker):
    with pytest.raises(SMDebugValueError, match="worker"):
        smdebug.Hook(out_dir, worker=worker)


def test_steps_may_begin_without_a_block(out_dir):
    hook = smdebug.Hook(out_dir, save_config=EVERY_STEP)
    for step in range(3):
        hook.step(modes.TRAIN)
        hook.record("loss", float(step))
    hook.close()
    assert saved_steps(out_dir) == [0, 1, 2]


def test_closing_twice_changes_nothing(out_dir):
    hook = smdebug.Hook(out_dir)
    hook.close()
    hook.close()
    with hook.step():
        hook.record("loss", 1.0)
        hook.save_scalar("x", 1.0)
    assert saved_steps(out_dir) == []


def test_a_crashed_training_leaves_no_end_marker_but_the_step_it_crashed_in(out_dir):
    with pytest.raises(ZeroDivisionError), smdebug.Hook(out_dir, save_config=EVERY_STEP) as hook:
        with hook.step():
            hook.record("loss", 1.0)
        with hook.step():
            hook.record("loss", float("nan"))
            1 / 0
    assert not has_ended(out_dir)
    assert names_at(out_dir, 1) == ["loss"]
    assert index_of(out_dir, 1)["meta"]["interrupted"] is True
    assert "interrupted" not in index_of(out_dir, 0)["meta"]


def test_leaving_with_success_is_an_end(out_dir):
    with pytest.raises(SystemExit), smdebug.Hook(out_dir):
        raise SystemExit(0)
    assert has_ended(out_dir)


def test_leaving_with_a_failure_is_not(out_dir):
    with pytest.raises(SystemExit), smdebug.Hook(out_dir):
        raise SystemExit(1)
    assert not has_ended(out_dir)


def test_sagemaker_marks_the_end_itself(out_dir, monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    with smdebug.Hook(out_dir) as hook, hook.step():
        hook.record("loss", 1.0)
    assert saved_steps(out_dir) == [0]
    assert not has_ended(out_dir)


def test_a_place_with_a_finished_run_is_refused(out_dir):
    smdebug.Hook(out_dir).close()
    with pytest.raises(RunEnded, match=r"Save to another place, for example .*run-2"):
        smdebug.Hook(out_dir)


def test_out_dir_is_required():
    with pytest.raises(RuntimeError, match="out_dir"):
        smdebug.Hook()
