"""What the hooks of frameworks ask of a step, and what they do where something goes wrong."""

import logging

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.trials import create_trial
from tests.saving.saved_files import index_of, names_at, saved_steps

EVERY_THIRD = SaveConfig(save_interval=3)


def third(place, **options):
    return smdebug.Hook(str(place), save_all=True, save_config=EVERY_THIRD, **options)


def test_a_hook_knows_what_is_saved_now_and_next(out_dir):
    hook = third(out_dir)
    assert not hook.next_is_due, "no step has begun"
    assert not hook.has_closed
    assert hook.last_saved_step is None
    seen = []
    for _ in range(5):
        with hook.step(modes.TRAIN):
            seen.append((hook.saves_now, hook.next_is_due, bool(hook.collections_due()), bool(hook.due)))
            hook.record("x", np.ones(2))
    saved, quiet, before = (
        (True, False, True, True),
        (False, False, False, False),
        (False, True, False, False),
    )
    assert seen == [saved, quiet, before, saved, quiet]
    assert hook.last_saved_step == 3
    hook.close()
    assert hook.has_closed


def test_the_next_step_is_asked_of_its_own_mode(out_dir):
    only_training = {modes.TRAIN: SaveConfig(save_interval=1), modes.EVAL: SaveConfig(save_interval=2)}
    per_mode = {mode: config.mode_save_configs[mode] for mode, config in only_training.items()}
    with smdebug.Hook(str(out_dir), save_all=True, save_config=per_mode) as hook:
        with hook.step(modes.TRAIN):
            assert hook.next_is_due
        with hook.step(modes.EVAL):
            assert hook.saves_now
            assert not hook.next_is_due


def test_which_outputs_were_recorded_at_this_step(out_dir):
    with third(out_dir) as hook:
        assert hook.names_with_outputs() == []
        for _ in range(4):
            with hook.step():
                assert hook.names_with_outputs() == []
                assert hook.count_outputs("relu") == 0
                hook.record_outputs("relu", (np.ones(2), np.ones(2)))
                hook.record_inputs("relu", np.ones(2))
                hook.record_outputs("out", np.ones(2))
                is_saved = int(hook.step) in (0, 3)
                assert hook.names_with_outputs() == (["relu", "out"] if is_saved else [])
                assert hook.count_outputs("relu") == (2 if is_saved else 0)
    assert names_at(out_dir, 3) == ["relu_output_0", "relu_output_1", "relu_input_0", "out_output_0"]


@pytest.mark.parametrize(
    "values", [[np.ones(1), np.ones(2)], (np.ones(1), np.ones(2)), {"a": np.ones(1), 1: np.ones(2)}]
)
def test_a_function_that_returns_several_tensors_has_one_output_for_each(values, out_dir):
    with third(out_dir) as hook, hook.step():
        hook.record_tensor_value("split", values)
        hook.record_tensor_value("loss", 0.5)
    assert names_at(out_dir, 0) == ["split_output_0", "split_output_1", "loss_output_0"]


def test_a_step_that_is_marked_as_interrupted_says_so(out_dir):
    with third(out_dir) as hook:
        hook.mark_interrupted()
        for step in range(4):
            hook.begin_step()
            hook.record("x", np.ones(2))
            if step == 3:
                hook.mark_interrupted()
        hook.recorder.hand_over()
    assert ["interrupted" in index_of(out_dir, step)["meta"] for step in (0, 3)] == [False, True]


def test_a_tensor_is_assigned_to_a_collection_by_name(out_dir):
    with smdebug.Hook(str(out_dir), include_collections=["gradients"], save_config=EVERY_THIRD) as hook:
        hook.assign("odd", "gradients")
        with hook.step():
            hook.record("odd", np.ones(2))
            assert not hook.includes("odd")
            hook.assign("odd", "gradients")
            assert hook.includes("odd")
            assert hook.wants("odd")
            hook.record("odd", np.ones(2))
    assert names_at(out_dir, 0) == ["odd"]


def test_what_goes_wrong_in_a_part_is_left_out_and_said_once_for_each_place(out_dir, log_records):
    def broken():
        raise RuntimeError("no such layer")

    def also_broken():
        raise RuntimeError("no such layer")

    with third(out_dir) as hook, hook.step():
        for part in (broken, broken, also_broken):
            hook.guarded(part)
        hook.record("x", np.ones(2))
        hook.warn_once("one", "kind")
        hook.warn_once("two", "kind")
    said = [record.getMessage() for record in log_records if record.levelno == logging.WARNING]
    assert len([text for text in said if "leaves out" in text]) == 2
    assert all("test_callback_hook.py, line" in text for text in said if "leaves out" in text)
    assert [text for text in said if text in ("one", "two")] == ["one"]
    assert names_at(out_dir, 0) == ["x"], "all else is saved"


@pytest.mark.parametrize("how", ["fail", "no memory", "in a step"])
def test_after_a_failure_nothing_is_saved_any_more_and_the_training_goes_on(how, out_dir, log_records):
    with third(out_dir) as hook:
        for step in range(7):
            with hook.step():
                hook.record("x", np.ones(2))
                if step == 3:
                    if how == "fail":
                        hook.fail(RuntimeError("broken"))
                    elif how == "no memory":
                        hook.leave_out(MemoryError())
                    else:
                        hook.contain(RuntimeError("broken"))
        hook.save_scalar("late", 1.0)
        assert hook.step == 6
    assert saved_steps(out_dir) == [0]
    assert any("no longer saves anything" in record.getMessage() for record in log_records)
    note = create_trial(str(out_dir)).closing_notes(["worker_0"])["worker_0"]
    assert note.lost.count >= 1
    assert note.lost.first == 3


def test_what_is_wrong_before_the_first_step_is_raised(out_dir):
    hook = third(out_dir)
    with pytest.raises(SMDebugValueError, match="a setting"):
        hook.contain(SMDebugValueError("a setting"))
    with hook.step():
        hook.contain(SMDebugValueError("a setting"))
    hook.close()


def test_facts_of_a_batch_are_noted_of_the_steps_that_are_saved(out_dir):
    with smdebug.Hook(str(out_dir)) as hook:
        for _ in range(13):
            with hook.step(modes.TRAIN):
                hook.record("loss", 1.0)
                hook.record_batch({"x": np.array([[1, 2], [1, 2], [3, 4]]), "y": [np.arange(3)]})
    trial = create_trial(str(out_dir))
    assert trial.steps() == [*range(11), 12], "the last one has the losses since then"
    facts = trial.facts(3)
    assert facts["shapes"] == [[3, 2], [3]]
    assert facts["distinct_rows"] == 2


@pytest.mark.parametrize(
    "value", ["0.5", 1 + 2j, [1.0, 2.0], None, np.ones(2), np.array([object()]), np.array(["x"], object)]
)
def test_a_scalar_is_one_real_number(value, out_dir):
    with third(out_dir) as hook, hook.step(), pytest.raises(SMDebugTypeError, match="Scalar accuracy"):
        hook.save_scalar("accuracy", value)
