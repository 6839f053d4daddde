"""The callback for transformers' Trainer, on a small language model."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerState, TrainingArguments

import smdebug.pytorch as smd
from smdebug.huggingface import Callback
from smdebug.huggingface.callback import checkpoint_of

EVERY_STEP = smd.SaveConfig(save_interval=1)


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, number):
        ids = torch.arange(number, number + 6) % 20
        return {"input_ids": ids, "labels": ids}


def small_model():
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": 8, "vocab_size": 20}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))


def train(tmp_path, callback=None, *, model=None, steps=3, evaluate=False, **more):
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "checkpoints"),
        max_steps=steps,
        per_device_train_batch_size=2,
        per_device_eval_batch_size=8,
        logging_steps=1,
        use_cpu=True,
        disable_tqdm=True,
        **{"save_strategy": "no", "report_to": [], **more},
    )
    model = model or small_model()
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Texts(),
        eval_dataset=Texts(),
        callbacks=[callback] if callback else [],
    )
    if steps:
        trainer.train()
    if evaluate:
        trainer.evaluate()
    return trainer


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def callback_in(run, **settings):
    return Callback(str(run), **{"save_config": EVERY_STEP, "save_all": True, **settings})


def test_steps_losses_gradients_and_layers_of_a_trainer_are_saved(run, tmp_path):
    callback = callback_in(run)
    trainer = train(tmp_path, callback, evaluate=True)
    callback.close()
    trial = smd.create_trial(str(run))
    assert trial.steps(smd.modes.TRAIN) == [0, 1, 2]
    assert trial.steps(smd.modes.EVAL) == [0, 1]
    assert trial.tensor_names(collection="losses") == ["loss_output_0"]
    names = set(trial.tensor_names(step=0))
    assert {
        "gradient/GPT2LMHeadModel_transformer.wte.weight",
        "transformer.h.0.mlp_output_0",
        "scalar/loss",
    } <= names
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    found = [float(trial.tensor("loss_output_0").value(s, smd.modes.TRAIN)) for s in range(3)]
    np.testing.assert_allclose(found, logged, atol=1e-3)


def test_accumulated_batches_are_one_step_with_the_gradient_that_the_optimizer_uses(run, tmp_path):
    callback = callback_in(run, save_all=False, include_collections=["gradients"])
    seen = []
    model = small_model()

    def look(optimizer, args, kwargs):
        seen.append(model.transformer.wte.weight.grad.clone())

    handle = register_optimizer_step_pre_hook(look)
    try:
        train(tmp_path, callback, model=model, gradient_accumulation_steps=2)
    finally:
        handle.remove()
    callback.close()
    trial = smd.create_trial(str(run))
    assert trial.steps() == [0, 1, 2]
    gradient = trial.tensor("gradient/GPT2LMHeadModel_transformer.wte.weight")
    for step in range(3):
        np.testing.assert_array_equal(gradient.value(step), seen[step])


def test_a_training_has_the_same_results_with_and_without_the_callback(run, tmp_path):
    callback = callback_in(run)
    watched = train(tmp_path, callback).model.state_dict()
    callback.close()
    alone = train(tmp_path).model.state_dict()
    assert all(torch.equal(watched[name], alone[name]) for name in alone)


def test_a_model_that_is_trained_after_another_takes_its_place(run, tmp_path):
    callback = callback_in(run)
    before = train(tmp_path, callback, steps=2).model
    train(tmp_path, callback, steps=2)
    before.eval()(torch.tensor([[1, 2]]))
    callback.close()
    trial = smd.create_trial(str(run))
    assert trial.steps() == trial.steps(smd.modes.TRAIN) == [0, 1, 2, 3]
    assert [name for name in trial.tensor_names() if "wte.weight" in name] == [
        "GPT2LMHeadModel_transformer.wte.weight",
        "gradient/GPT2LMHeadModel_transformer.wte.weight",
    ]


def test_asked_to_stop_the_trainer_saves_a_checkpoint_and_ends(run, tmp_path):
    class Asking(Callback):
        def on_step_end(self, args, state, control, **given):
            super().on_step_end(args, state, control, **given)
            if state.global_step == 3:
                (run / "control").mkdir()
                (run / "control" / "stop").write_text('{"reason": "enough"}')

    callback = Asking(str(run), save_config=EVERY_STEP, look_for_stop=0)
    trainer = train(tmp_path, callback, steps=50)
    callback.close()
    assert trainer.state.global_step < 7
    assert "enough" in str(callback.stopped)
    assert list((tmp_path / "checkpoints").glob("checkpoint-*"))
    assert smd.create_trial(str(run)).loaded_all_steps


# Under the default plan


def test_under_the_default_plan_a_training_has_the_same_results(run, tmp_path):
    callback = Callback(str(run))
    watched = train(tmp_path, callback, steps=12, gradient_accumulation_steps=2)
    state = torch.get_rng_state()
    callback.close()
    alone = train(tmp_path, steps=12, gradient_accumulation_steps=2)
    assert torch.equal(state, torch.get_rng_state())
    watched, alone = watched.model.state_dict(), alone.model.state_dict()
    assert all(torch.equal(watched[name], alone[name]) for name in alone)


def test_losses_of_every_step_what_is_logged_and_measurements_are_kept(run, tmp_path):
    callback = Callback(str(run))
    trainer = train(tmp_path, callback, steps=15, evaluate=True)
    callback.close()
    trial = smd.create_trial(str(run))
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    losses = trial.series("loss").of(smd.modes.TRAIN)
    assert losses.mode_steps.tolist() == list(range(15))
    np.testing.assert_allclose(losses.values, logged, atol=1e-3)
    np.testing.assert_allclose(trial.series("logged/loss").values, logged, atol=1e-6)
    assert len(trial.series("grad_norm")) == 15
    assert trial.series("system/epoch").of(smd.modes.TRAIN).mode_steps.tolist() == [0, 8]
    assert len(trial.series("eval_loss")) == 1
    statistics = trial.statistics(10, smd.modes.TRAIN)
    assert {"parameters", "gradients", "updates", "inputs", "outputs"} == set(statistics.kinds)
    assert trial.facts(10, smd.modes.TRAIN)["shapes"][0] == [2, 6]
    assert "gradient/GPT2LMHeadModel_transformer.wte.weight" in statistics
    assert trial.observations.steps(smd.modes.EVAL, "outputs") == [0]
    assert not trial.tensor_names(regex="^scalar/")


def test_the_run_knows_the_arguments_of_the_trainer_and_the_model(run, tmp_path):
    callback = Callback(str(run), config={"weight_decay": "mine"})
    train(tmp_path, callback, weight_decay=0.25, hub_token="hidden")
    callback.close()
    origin = smd.create_trial(str(run)).origin
    assert origin.config["weight_decay"] == "mine"  # what a person said first
    assert origin.config["max_steps"] == 3
    assert origin.config["model.n_embd"] == 8
    assert list(origin.config).index("max_steps") < list(origin.config).index("seed")
    assert "hidden" not in (run / "origin.json").read_text(encoding="utf-8")
    assert {"torch", "transformers"} <= set(origin.packages)


def test_the_arguments_of_a_training_are_a_fact_without_its_secrets(run, tmp_path):
    callback = Callback(str(run))
    train(tmp_path, callback, hub_token="hidden", weight_decay=0.25)
    callback.close()
    arguments = smd.create_trial(str(run)).facts(2)["arguments"]
    assert (arguments["max_steps"], arguments["weight_decay"]) == (3, 0.25)
    assert "hidden" not in str(arguments)


def test_a_callback_that_is_told_what_to_save_saves_that_alone(run, tmp_path):
    callback = Callback(str(run), include_collections=["losses"])
    train(tmp_path, callback)
    callback.close()
    assert not smd.create_trial(str(run)).tensor_names(regex="^smdebug/")


def test_steps_after_an_evaluation_are_in_training_mode(run, tmp_path):
    callback = Callback(str(run))
    train(tmp_path, callback, steps=9, eval_strategy="steps", eval_steps=3)
    callback.close()
    trial = smd.create_trial(str(run))
    trained = {step: trial.facts(step, smd.modes.TRAIN)["training"] for step in trial.steps(smd.modes.TRAIN)}
    assert len(trained) == 9
    assert set(trained.values()) == {True}


def test_a_model_that_is_evaluated_and_never_trained_is_watched(run, tmp_path, capfd):
    callback = Callback(str(run))
    train(tmp_path, callback, steps=0, evaluate=True)
    callback.close()
    trial = smd.create_trial(str(run))
    assert trial.series("loss").of(smd.modes.EVAL).mode_steps.tolist() == [0, 1]
    assert trial.statistics(0).of("outputs").names
    assert "No loss" not in capfd.readouterr().out


def test_a_resumed_training_has_the_steps_of_its_trainer(run, tmp_path):
    train(tmp_path, steps=4, save_strategy="steps", save_steps=4)
    callback = Callback(str(run))
    trainer = train(tmp_path, callback, steps=0)
    trainer.args.max_steps = 7
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoints" / "checkpoint-4"))
    callback.close()
    assert smd.create_trial(str(run)).series("loss").of(smd.modes.TRAIN).steps.tolist() == [4, 5, 6]


def test_checkpoints_of_the_trainer_are_marked_with_the_step_before_them(run, tmp_path):
    callback = Callback(str(run), save_config=EVERY_STEP)
    train(tmp_path, callback, steps=6, save_strategy="steps", save_steps=2, save_total_limit=2)
    callback.close()
    marked = smd.create_trial(str(run)).checkpoints()
    assert [(item.step, Path(item.path).name) for item in marked] == [
        (3, "checkpoint-4"),
        (5, "checkpoint-6"),
    ]
    assert all(Path(item.path).is_dir() for item in marked)


@pytest.mark.parametrize("is_search", [True, False])
def test_a_checkpoint_of_a_search_is_in_the_folder_of_the_trial_that_saved_last(tmp_path, is_search):
    for at, folder in enumerate(("run-0/checkpoint-4", "run-1/checkpoint-4", "run-2/checkpoint-2")):
        place = tmp_path / folder
        place.mkdir(parents=True)
        os.utime(place, (1000 + at, 1000 + at))
    state = TrainerState(global_step=4, is_hyper_param_search=is_search)
    found = checkpoint_of(SimpleNamespace(output_dir=str(tmp_path)), state)
    assert found == tmp_path / ("run-1/checkpoint-4" if is_search else "checkpoint-4")
