"""The default plan, in a training without a framework."""

import time

import numpy as np
import pytest

import smdebug
from smdebug import SaveConfig, modes
from smdebug.exceptions import TensorUnavailableForStep
from smdebug.files.names import END_MARKER
from smdebug.saving.planning.default_plan import kind_of
from smdebug.saving.recording import recorder
from smdebug.trials import create_trial
from smdebug.trials.observations.whole_run import ObservationsUnavailable


def observing(place, **options):
    hook = smdebug.Hook(place, **options)
    hook.observes = True
    return hook


def train(hook, steps=25, validation=0):
    """Steps of TRAIN with a weight, its gradient, a layer's input and output; then some of EVAL."""
    weight = np.ones((4, 3), np.float32)
    for step in range(steps):
        with hook.step(modes.TRAIN):
            hook.record("loss", 10.0 - step / 10)
            hook.record("dense/weight", weight)
            hook.record("gradient/dense/weight", weight * step)
            hook.record("dense_input_0", weight)
            hook.record("dense_output_0", weight - 1)
    for step in range(validation):
        with hook.step(modes.EVAL):
            hook.record("loss", 5.0 + step)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "run"


def read(place):
    return create_trial(str(place))


def test_the_first_ten_steps_every_tenth_and_every_hundredth_are_saved(place):
    with observing(place) as hook:
        train(hook, steps=1301)
    steps = read(place).steps(modes.TRAIN)
    assert steps == [*range(10), *range(10, 1001, 10), 1100, 1200, 1300]


def test_a_training_that_goes_on_from_a_checkpoint_is_saved_as_densely_under_its_own_numbers(place):
    with observing(place) as hook:
        hook.recorder.begin_at(10_003)
        train(hook, steps=125, validation=2)
        hook.recorder.begin_at(7)  # too late
        train(hook, steps=1)
    trial = read(place)
    steps = [10_003 + step for step in (*range(10), *range(10, 125, 10), 125)]
    assert trial.steps(modes.TRAIN) == steps
    assert trial.series("loss").of(modes.TRAIN).mode_steps.tolist() == list(range(10_003, 10_129))
    assert trial.series("loss").of(modes.EVAL).mode_steps.tolist() == [0, 1]
    assert trial.loaded_all_steps


def test_an_attempt_that_begins_later_keeps_the_steps_before_it(place):
    for first, steps in ((0, 20), (20, 9), (0, 3)):
        with observing(place) as hook:
            hook.recorder.begin_at(first)
            train(hook, steps=steps)
        (place / END_MARKER).unlink()  # as where it was killed
        kept = read(place).series("loss").of(modes.TRAIN).steps.tolist()
        assert kept == list(range(first + steps))


def test_the_loss_of_every_step_is_kept_and_that_of_saved_steps_is_a_tensor_too(place):
    with observing(place) as hook:
        train(hook, steps=25)
    trial = read(place)
    loss = trial.series("loss")
    assert loss.values.tolist() == [10.0 - step / 10 for step in range(25)]
    assert loss.steps.tolist() == loss.mode_steps.tolist() == list(range(25))
    assert trial.tensor("loss").value(20, modes.TRAIN) == 8.0


def test_other_tensors_are_measured_and_not_saved(place):
    with observing(place) as hook:
        train(hook)
    trial = read(place)
    statistics = trial.statistics(3, modes.TRAIN)
    assert dict(zip(statistics.names, statistics.kinds, strict=True)) == {
        "dense/weight": "parameters",
        "gradient/dense/weight": "gradients",
        "dense_input_0": "inputs",
        "dense_output_0": "outputs",
    }
    assert statistics.row("gradient/dense/weight")["mean"] == 3
    assert statistics.row("dense_output_0")["zeros"] == 12
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("dense/weight").value(3, modes.TRAIN)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fc.weight", "parameters"),
        ("gradient/fc.weight", "gradients"),
        ("update/fc.weight", "updates"),
        ("fc_input_12", "inputs"),
        ("fc_output_0", "outputs"),
        ("fc_output_layer", "parameters"),
        ("outputs/kernel", "parameters"),
        ("dense/outputs", "outputs"),
        ("dense/outputs_1", "outputs"),
        ("predictions", "outputs"),
        ("inputs_0", "inputs"),
        ("labels", "inputs"),
    ],
)
def test_the_kind_of_a_tensor_follows_from_its_name(name, kind):
    assert kind_of(name) == kind


def test_of_each_block_of_validation_the_first_step_is_saved(place):
    with observing(place) as hook:
        for _ in range(3):
            train(hook, steps=5, validation=4)
    trial = read(place)
    assert trial.steps(modes.EVAL) == [0, 4, 8, 11]  # with the last one come the scalars since
    assert trial.series("loss").of(modes.EVAL).values.tolist() == [5, 6, 7, 8] * 3


def test_of_many_blocks_few_are_measured(place):
    with observing(place) as hook:
        for _ in range(1250):
            train(hook, steps=1, validation=1)
    trial = read(place)
    last = 1249  # which comes with the scalars since
    assert trial.steps(modes.EVAL) == [*range(100), *range(100, 1000, 10), 1000, 1100, 1200, last]
    assert len(trial.series("loss").of(modes.EVAL)) == 1250


def test_inputs_of_layers_are_left_out_where_one_of_them_has_the_batch(place):
    hook = observing(place)
    with hook, hook.step(modes.TRAIN):
        hook.observe_inputs_of("net")
        hook.record("net_input_0", np.ones(2))
        hook.record("dense_input_0", np.ones(2))
    assert read(place).statistics(0).names == ["net_input_0"]


def test_a_kind_that_the_name_does_not_show_can_be_said(place):
    with observing(place) as hook, hook.step(modes.TRAIN):
        hook.observe_as("outputs/0", "outputs")
        hook.record("outputs/0", np.ones(2))
    assert read(place).statistics(0).kinds == ("outputs",)


def test_modes_that_are_set_by_name_make_blocks_too(place):
    with observing(place) as hook:
        for mode in (modes.TRAIN, modes.EVAL, modes.EVAL, modes.TRAIN, modes.EVAL):
            hook.set_mode(mode)
            with hook.step():
                hook.record("loss", 1.0)
    assert read(place).steps(modes.EVAL) == [0, 2]


def test_scalars_are_written_by_a_training_that_ends_with_an_error(place):
    with pytest.raises(ZeroDivisionError), observing(place) as hook:
        train(hook, steps=16)
        raise ZeroDivisionError
    assert len(read(place).series("loss")) == 16


def test_scalars_wait_no_longer_than_a_minute(place, monkeypatch):
    monkeypatch.setattr(recorder, "CARRIED_SECONDS", 0.0)
    hook = observing(place)
    train(hook, steps=13)
    time.sleep(0.01)
    with hook.step(modes.TRAIN):
        pass
    hook.recorder.flush()
    assert len(read(place).series("loss")) == 13
    hook.close()


def test_chosen_tensors_are_saved_and_nothing_else(tmp_path):
    chosen = {
        "collections": {"include_collections": ["losses"]},
        "patterns": {"include_regex": ["loss"]},
        "steps": {"save_config": SaveConfig(save_interval=5)},
        "everything": {"save_all": True},
    }
    for name, options in chosen.items():
        with observing(tmp_path / name, **options) as hook:
            train(hook)
        trial = read(tmp_path / name)
        assert not [t for t in trial.tensor_names() if t.startswith("smdebug/")], name
        with pytest.raises(ObservationsUnavailable):
            trial.statistics(0)


def test_a_collection_that_was_changed_is_a_choice(tmp_path):
    hook = observing(tmp_path / "changed")
    hook.get_collection("losses").save_config = SaveConfig(save_interval=3)
    with hook:
        train(hook, steps=7)
    assert read(tmp_path / "changed").steps(modes.TRAIN) == [0, 3, 6]

    hook = observing(tmp_path / "asked")
    assert hook.get_collection("losses").name == "losses"
    with hook:
        train(hook, steps=7)
    assert read(tmp_path / "asked").steps(modes.TRAIN) == list(range(7))


def test_a_hook_with_a_place_and_nothing_else_follows_the_plan(place):
    with smdebug.Hook(place) as hook:
        train(hook)
    assert read(place).statistics(3, modes.TRAIN).names


def test_every_number_that_is_recorded_is_a_series_and_no_tensor(place, caplog):
    with smdebug.Hook(place) as hook:
        for step in range(13):
            with hook.step():
                hook.record_all({"learning_rate": 1 / (step + 1), "dense/weight": np.ones(3)})
    trial = read(place)
    assert trial.series("learning_rate").values.tolist() == [1 / (step + 1) for step in range(13)]
    assert "learning_rate" not in caplog.text
    assert trial.statistics(0).names == ["dense/weight"]


def test_the_tensors_of_a_batch_are_measured_and_its_form_is_a_fact(place):
    with smdebug.Hook(place) as hook, hook.step():
        hook.record_batch({"x": np.ones((6, 2)), "y": [np.arange(6)]})
    trial = read(place)
    assert trial.statistics(0).of("inputs").names == ["batch_input_0", "batch_input_1"]
    facts = trial.facts(0)
    assert (facts["shapes"], facts["distinct_rows"]) == ([[6, 2], [6]], 1)


def test_the_default_configuration_is_recognised_before_and_after_the_first_step(place):
    with observing(place) as hook:
        assert hook.has_default_hook_configuration()
        train(hook, steps=1)
        assert hook.has_default_hook_configuration()


def test_observations_are_not_tensors_unless_requested(place):
    with observing(place) as hook:
        train(hook, steps=2)
    trial = read(place)
    assert trial.tensor_names() == trial.tensor_names(regex=".*") == ["loss"]
    assert trial.tensor_names(step=0) == ["loss"]
    assert "smdebug/facts" in trial.tensor_names(regex="^smdebug/")
    assert "smdebug/facts" in trial.tensor_names(collection="observations")
    assert "smdebug/facts" not in trial.tensor_names(collection="losses")


def test_a_value_that_cannot_be_measured_is_left_out(place):
    with observing(place) as hook, hook.step(modes.TRAIN):
        hook.record("text", np.array(["a"]))
        hook.record("complex", np.array([1j]))
        hook.record("object", object())
        hook.record("weight", np.ones(2))
    assert read(place).statistics(0).names == ["weight"]


def test_a_resumed_training_writes_its_own_layout(place):
    for _ in range(2):
        hook = observing(place)
        train(hook, steps=3)
        hook.__exit__(ValueError, ValueError(), None)
    assert read(place).statistics(2, modes.TRAIN).names


def test_what_has_no_numbers_draws_one_warning(place, capsys):
    with observing(place) as hook:
        for _ in range(12):
            with hook.step(modes.TRAIN):
                hook.record("loss", 1.0)
                hook.record("text", "hello")
                hook.record("waves", np.ones(2) * 1j)
                hook.record("thing", object())
                hook.record("empty", np.ones((0, 3)))
    output = capsys.readouterr().out
    assert output.count("Tensor text is not measured: its values are text or complex") == 1
    assert output.count("is not measured") == 1
    assert output.count("Tensor thing is not saved: A value of type object cannot be saved as a tensor") == 1


def test_terms_of_a_loss_and_what_they_were_given_are_facts_of_their_step(place):
    logits = np.random.default_rng(0).normal(size=(8, 3))
    with observing(place) as hook:
        for step in range(11):
            with hook.step(modes.TRAIN):
                hook.record_loss(1.5, logits, np.arange(8) % 3, criterion="cross_entropy")
                if step:
                    hook.record_loss(0.5, logits[:, :1], logits[:, 0], criterion="mse", name="extra")
                logits += 1  # what was recorded stays what it was
    trial = read(place)
    assert [term["criterion"] for term in trial.facts(0)["loss"]["terms"]] == ["cross entropy"]
    terms = trial.facts(10)["loss"]["terms"]
    assert [term["criterion"] for term in terms] == ["cross entropy", "mean squared error"]
    assert (terms[0]["rows"], terms[0]["classes_seen"]) == (8, 3)
    assert set(trial.tensor_names(collection="losses")) == {"extra", "loss"}
    assert trial.statistics(10).of("outputs").names == ["predictions"]


def test_a_loss_without_predictions_is_a_loss_like_any_other(place):
    with observing(place) as hook:
        train_one(hook)
    assert read(place).series("loss").values.tolist() == [2.0]
    assert "loss" not in read(place).facts(0)


def train_one(hook):
    with hook.step(modes.TRAIN):
        hook.record_loss(2.0)
        hook.record("weight", np.ones(3))


def test_a_chosen_plan_saves_the_loss_and_what_was_chosen_of_the_rest(place):
    config = SaveConfig(save_interval=2)
    with smdebug.Hook(place, save_config=config, include_regex=["predictions"]) as hook:
        for _ in range(3):
            with hook.step(modes.TRAIN):
                hook.record_loss(1.0, np.ones((2, 2)), np.zeros(2), criterion="mse")
    assert read(place).tensor_names() == ["loss", "predictions"]


def test_what_has_a_gradient_or_an_update_is_what_the_optimizer_of_a_loop_changes(place):
    with observing(place) as hook:
        for _ in range(2):
            with hook.step(modes.TRAIN):
                hook.record("lr", 0.1)
                for name in ("a", "b", "mean", "gradient/a", "update/b"):
                    hook.record(name, np.ones(3))
        with hook.step(modes.EVAL):
            hook.record("a", np.ones(3))
    trial = read(place)
    facts = trial.facts(1)
    assert facts["optimizers"] == [{"class": "", "groups": [{"parameters": ["a", "b"], "others": 0}]}]
    assert (facts["training"], facts["optimizer_steps"]) == (True, True)
    assert "training" not in trial.facts(0, modes.EVAL)
    assert trial.series("learning_rate/0/0").values.tolist() == [0.1, 0.1]
