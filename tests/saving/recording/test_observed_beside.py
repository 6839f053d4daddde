"""What is observed of a training beside the tensors that somebody chose."""

import numpy as np

import smdebug
from smdebug import modes
from smdebug.files.index import BESIDE
from smdebug.runs.verifying import verify
from smdebug.saving.recording import capture
from smdebug.trials import create_trial
from tests.saving.saved_files import index_of, names_at


class Observing(smdebug.Hook):
    """The hook for any loop, with what that for PyTorch does by itself."""

    observes_chosen = True


def chosen(place, every=10, collections=("gradients",), **options):
    config = smdebug.SaveConfig(save_interval=every)
    return Observing(str(place), include_collections=collections, save_config=config, **options)


def train(hook, steps):
    with hook:
        hook.set_mode(modes.TRAIN)
        for step in range(steps):
            with hook.step():
                hook.record("gradient/w", np.full(3, step, np.float32))
                hook.record("layer_output_0", np.full((4, 2), step, np.float32))
                hook.record("loss", np.float32(1 / (step + 1)))


def observed(place, step):
    return create_trial(str(place)).observations.judged(step)


def test_the_losses_of_steps_that_are_not_saved_come_with_the_next_one_that_is(tmp_path):
    train(chosen(tmp_path), 25)

    assert create_trial(str(tmp_path)).steps() == [0, 10, 20]
    rows = observed(tmp_path, 20).series("loss")
    assert rows[:, 0].tolist() == [*range(11, 21)]
    assert rows[:, 3].tolist() == [float(np.float32(1 / (step + 1))) for step in range(11, 21)]


def test_other_tensors_are_measured_and_the_chosen_ones_are_the_tensors_of_the_run(
    tmp_path,
):
    train(chosen(tmp_path), 25)

    trial = create_trial(str(tmp_path))
    assert trial.tensor_names() == ["gradient/w", "loss"]
    assert trial.tensor("gradient/w").steps() == [0, 10, 20]
    assert not trial.has_tensor("layer_output_0")
    assert trial.tensor_names(regex="^smdebug/") == []
    assert trial.tensor("layer_output_0").statistics(10).max == 10
    row = trial.observations.judged(10).statistics("outputs").row("layer_output_0")
    assert (row["min"], row["max"]) == (10, 10)
    assert not trial.observations.exist


def test_the_old_librarys_reader_finds_the_chosen_tensors_alone(tmp_path):
    train(chosen(tmp_path), 11)

    assert names_at(tmp_path, 10) == ["gradient/w", "loss"]
    index = index_of(tmp_path, 10)
    assert "smdebug/facts" not in str(index["tensor_payload"])
    assert "smdebug/series/loss" in [entry["tensorname"] for entry in index["meta"][BESIDE]]
    assert list(index) == ["meta", "tensor_payload", "shape_payload"]


def test_a_training_that_saves_every_step_is_measured_at_those_of_the_default_plan(tmp_path):
    train(chosen(tmp_path, every=1), 25)

    seen = [observed(tmp_path, step) for step in range(25)]
    measured = [step for step, at in enumerate(seen) if at.statistics("outputs") is not None]
    assert measured == [*range(11), 20]
    assert [at.series("loss")[:, 0].tolist() for at in seen] == [[step] for step in range(25)]


def test_a_training_that_saves_seldom_keeps_its_last_losses(tmp_path, monkeypatch):
    monkeypatch.setattr(capture, "MAX_CARRIED_BESIDE", 100)
    train(chosen(tmp_path, every=900), 901)

    steps = observed(tmp_path, 900).series("loss")[:, 0]
    assert steps.tolist() == [*range(int(steps[0]), 901)]
    assert 50 <= len(steps) <= 101


def test_an_evaluation_is_measured_at_its_first_step(tmp_path):
    with chosen(tmp_path, every=1, collections=["losses"]) as hook:
        for _ in range(2):
            for step in range(3):
                with hook.step(modes.EVAL):
                    hook.record("layer_output_0", np.full((4, 2), step, np.float32))
                    hook.record("loss", np.float32(step))
            with hook.step(modes.TRAIN):
                hook.record("loss", np.float32(1))

    measured = [step for step in range(8) if observed(tmp_path, step).statistics("outputs") is not None]
    assert measured == [0, 4]


def test_what_is_observed_at_a_step_of_which_nothing_is_saved_does_not_come_with_the_next(tmp_path):
    with chosen(tmp_path, every=1) as hook:
        hook.set_mode(modes.TRAIN)
        with hook.step():
            hook.noted.note(only_here=True)
            hook.record("layer_output_0", np.zeros((4, 2)))
        with hook.step():
            hook.record("gradient/w", np.ones(3))

    assert create_trial(str(tmp_path)).steps() == [1]
    assert "only_here" not in observed(tmp_path, 1).facts
    assert observed(tmp_path, 1).statistics("outputs") is None


def test_a_tensor_of_which_reductions_are_chosen_has_them_and_is_measured(tmp_path):
    reductions = smdebug.ReductionConfig(reductions=["max"])
    train(chosen(tmp_path, reduction_config=reductions), 11)

    trial = create_trial(str(tmp_path))
    assert trial.tensor("gradient/w").reduction_value(10, "max") == 10
    assert trial.observations.judged(10).statistics("gradients").row("gradient/w")["max"] == 10


def test_a_tensor_that_is_only_measured_is_not_wanted(tmp_path):
    with chosen(tmp_path) as hook, hook.step(modes.TRAIN):
        assert hook.wants("gradient/w")
        assert not hook.wants("layer_output_0")
        assert not hook.should_save_tensor_or_collection("layer_output_0", "outputs")


def test_a_value_saved_after_its_step_leaves_the_observations_beside(tmp_path):
    with chosen(tmp_path) as hook:
        hook.set_mode(modes.TRAIN)
        with hook.step():
            hook.record("gradient/w", np.ones(3, np.float32))
            hook.record("layer_output_0", np.ones((4, 2), np.float32))
        hook.save_scalar("late", 3)

    assert names_at(tmp_path, 0) == ["gradient/w", "scalar/late"]
    assert observed(tmp_path, 0).statistics("outputs").row("layer_output_0")["max"] == 1
    assert create_trial(str(tmp_path)).tensor("scalar/late").value(0) == [3]


def test_the_run_is_sound(tmp_path):
    train(chosen(tmp_path), 25)

    assert verify(str(tmp_path)).problems == ()


def test_a_number_of_yours_is_a_scalar_of_its_step_once(tmp_path):
    with chosen(tmp_path) as hook, hook.step(modes.TRAIN):
        hook.record("gradient/w", np.ones(3))
        hook.log(accuracy=0.5)

    assert "scalar/accuracy" in create_trial(str(tmp_path)).tensor_names()
    assert "accuracy" not in observed(tmp_path, 0).series_names


def test_the_hook_for_any_loop_saves_what_is_chosen_and_nothing_beside(tmp_path):
    with smdebug.Hook(str(tmp_path), include_collections=["gradients"]) as hook, hook.step(modes.TRAIN):
        hook.record("gradient/w", np.ones(3))

    assert BESIDE not in index_of(tmp_path, 0)["meta"]
