"""The callback for Lightning, on a small module."""

from pathlib import Path

import lightning
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn

import smdebug.pytorch as smd
from smdebug.lightning import Callback

EVERY_STEP = smd.SaveConfig(save_interval=1)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        self.used = []

    def loss(self, batch):
        inputs, labels = batch
        return nn.functional.cross_entropy(self.net(inputs), labels)

    def training_step(self, batch, number):
        loss = self.loss(batch)
        self.log("accuracy", 0.5)
        return loss

    def validation_step(self, batch, number):
        self.log("val_loss", self.loss(batch))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        weight = self.net[0].weight
        optimizer.register_step_post_hook(lambda *given: self.used.append(weight.grad.clone()))
        return optimizer


def data():
    made = torch.Generator().manual_seed(0)
    inputs = torch.randn(12, 4, generator=made)
    rows = torch.utils.data.TensorDataset(inputs, (inputs[:, 0] > 0).long())
    return torch.utils.data.DataLoader(rows, batch_size=4)


def fit(folder, *callbacks, epochs=2, resumed=None, **more):
    torch.manual_seed(0)
    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(folder),
        callbacks=list(callbacks),
        **{"enable_checkpointing": False, "logger": False, **more},
    )
    trainer.fit(module, data(), data(), ckpt_path=resumed)
    return module


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def callback_in(run, **settings):
    return Callback(str(run), **{"save_config": EVERY_STEP, "save_all": True, **settings})


def test_steps_losses_gradients_layers_and_metrics_are_saved(run, tmp_path):
    callback = callback_in(run)
    module = fit(tmp_path, callback, gradient_clip_val=0.01)
    callback.close()
    trial = smd.create_trial(str(run))
    assert trial.steps(smd.modes.TRAIN) == list(range(6))
    assert trial.steps(smd.modes.EVAL) == list(range(6))
    assert trial.tensor_names(collection="losses") == ["loss_output_0"]
    assert {"net.1_output_0", "scalar/accuracy", "Module_net.0.weight"} <= set(trial.tensor_names())
    gradient = trial.tensor("gradient/Module_net.0.weight")
    for step in range(6):
        np.testing.assert_array_equal(gradient.value(step, smd.modes.TRAIN), module.used[step])


def test_a_training_has_the_same_results_with_and_without_the_callback(run, tmp_path):
    callback = callback_in(run)
    watched = fit(tmp_path, callback).state_dict()
    callback.close()
    alone = fit(tmp_path).state_dict()
    assert all(torch.equal(watched[name], alone[name]) for name in alone)


def test_what_an_evaluation_gave_in_all_is_saved_with_its_last_step(run, tmp_path):
    class Look(lightning.Callback):
        def on_validation_end(self, trainer, module):
            if not trainer.sanity_checking:
                logged.append(float(trainer.callback_metrics["val_loss"]))

    logged = []
    callback = callback_in(run, save_config=smd.SaveConfig(save_interval=100))
    fit(tmp_path, callback, Look())
    callback.close()
    metric = smd.create_trial(str(run)).tensor("scalar/val_loss")
    assert metric.steps(smd.modes.EVAL) == [2, 5]
    assert [float(metric.value(step, smd.modes.EVAL)) for step in (2, 5)] == logged


def test_a_model_that_is_trained_after_another_takes_its_place(run, tmp_path):
    callback = callback_in(run)
    first = fit(tmp_path, callback, epochs=1)
    second = fit(tmp_path, callback, epochs=1)
    callback.close()
    trial = smd.create_trial(str(run))
    assert trial.steps(smd.modes.TRAIN) == list(range(6))
    assert {name for name in trial.tensor_names() if "net.2.weight" in name} == {
        "Module_net.2.weight",
        "gradient/Module_net.2.weight",
    }
    gradient = trial.tensor("gradient/Module_net.0.weight")
    for step, used in enumerate([*first.used, *second.used]):
        np.testing.assert_array_equal(gradient.value(step, smd.modes.TRAIN), used)


def test_asked_to_stop_the_trainer_ends(run, tmp_path):
    class Asking(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
            if trainer.global_step == 2:
                (run / "control").mkdir()
                (run / "control" / "stop").write_text('{"reason": "enough"}')

    callback = Asking(str(run), save_config=EVERY_STEP, look_for_stop=0)
    fit(tmp_path, callback, epochs=50)
    callback.close()
    assert "enough" in str(callback.stopped)
    assert len(smd.create_trial(str(run)).steps(smd.modes.TRAIN)) < 6


def test_an_exception_leaves_the_steps_before_it(run, tmp_path):
    class Breaks(lightning.Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            if trainer.global_step == 2:
                raise ValueError("wrong")

    callback = callback_in(run)
    with pytest.raises(ValueError, match="wrong"):
        fit(tmp_path, callback, Breaks())
    assert smd.create_trial(str(run)).steps(smd.modes.TRAIN) == [0, 1, 2]


# Under the default plan


@pytest.mark.parametrize("accumulated", [1, 2])
def test_under_the_default_plan_a_training_has_the_same_results(run, tmp_path, accumulated):
    callback = Callback(str(run))
    watched = fit(tmp_path, callback, accumulate_grad_batches=accumulated)
    state = torch.get_rng_state()
    callback.close()
    alone = fit(tmp_path, accumulate_grad_batches=accumulated)
    assert torch.equal(state, torch.get_rng_state())
    watched, alone = watched.state_dict(), alone.state_dict()
    assert all(torch.equal(watched[name], alone[name]) for name in alone)


def test_losses_of_every_batch_what_is_logged_and_measurements_are_kept(run, tmp_path):
    callback = Callback(str(run))
    fit(tmp_path, callback, epochs=6, log_every_n_steps=4)
    callback.close()
    trial = smd.create_trial(str(run))
    loss = trial.series("loss")
    assert (len(loss.of(smd.modes.TRAIN)), len(loss.of(smd.modes.EVAL))) == (18, 18)
    assert {"parameters", "gradients", "updates", "inputs", "outputs"} == set(
        trial.statistics(5, smd.modes.TRAIN).kinds
    )
    facts = trial.facts(5, smd.modes.TRAIN)
    assert (facts["shapes"], facts["distinct_rows"]) == ([[4, 4], [4]], 4)
    assert trial.observations.steps(smd.modes.EVAL, "outputs") == [0, 3, 6, 9, 12, 15]
    assert trial.series("val_loss").mode_steps.tolist() == [2, 5, 8, 11, 14, 17]
    logged = trial.series("accuracy").of(smd.modes.TRAIN)
    assert {11, 15} <= set(logged.mode_steps.tolist())
    assert 13 not in logged.mode_steps
    assert not trial.tensor_names(regex="^scalar/")


def test_the_arguments_of_a_training_are_a_fact_without_its_secrets(run, tmp_path):
    class Named(Module):
        def __init__(self, width=3, api_key="hidden"):
            super().__init__()
            self.save_hyperparameters()

    callback = Callback(str(run))
    torch.manual_seed(0)
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(tmp_path),
        callbacks=[callback],
    )
    trainer.fit(Named(), data())
    callback.close()
    arguments = smd.create_trial(str(run)).facts(5)["arguments"]
    assert (arguments["width"], arguments["api_key"]) == (3, "***")
    assert (arguments["max_epochs"], arguments["precision"]) == (2, "32-true")
    config = smd.create_trial(str(run)).origin.config
    assert (config["width"], config["api_key"], config["max_epochs"]) == (3, "***", 2)


def test_accumulated_batches_are_one_step_as_in_transformers(run, tmp_path):
    callback = callback_in(run)
    module = fit(tmp_path, callback, accumulate_grad_batches=2)
    callback.close()
    trial = smd.create_trial(str(run))
    assert trial.steps(smd.modes.TRAIN) == [
        0,
        1,
        2,
        3,
    ]  # of three batches in an epoch, the last alone
    assert "loss_output_1" in trial.tensor_names(step=0)
    gradient = trial.tensor("gradient/Module_net.0.weight")
    for step in range(4):
        np.testing.assert_array_equal(gradient.value(step, smd.modes.TRAIN), module.used[step])


def test_a_callback_that_is_told_what_to_save_saves_that_alone(run, tmp_path):
    callback = Callback(str(run), include_collections=["losses"])
    fit(tmp_path, callback)
    callback.close()
    assert not smd.create_trial(str(run)).tensor_names(regex="^smdebug/")


def test_checkpoints_of_the_trainer_are_marked_with_the_step_before_them(run, tmp_path):
    callback = callback_in(run)
    keeper = ModelCheckpoint(str(tmp_path / "kept"), every_n_train_steps=2, save_top_k=-1, filename="{step}")
    fit(tmp_path, callback, keeper, enable_checkpointing=True)
    callback.close()
    trial = smd.create_trial(str(run))
    marked = trial.checkpoints()
    assert [Path(item.path).name for item in marked] == ["step=2.ckpt", "step=4.ckpt", "step=6.ckpt"]
    assert all(Path(item.path).is_file() for item in marked)
    assert [trial.mode_step(item.step) for item in marked] == [1, 3, 5]  # between them it evaluates


def test_a_checkpoint_that_is_saved_again_at_its_place_has_the_step_of_its_last_saving(run, tmp_path):
    callback = callback_in(run)
    rolling = ModelCheckpoint(
        str(tmp_path / "rolling"), every_n_train_steps=2, save_top_k=-1, filename="{step}", save_last=True
    )
    best = ModelCheckpoint(
        str(tmp_path / "best"),
        monitor="val_loss",
        filename="best",
        enable_version_counter=False,
        save_last=True,
    )
    fit(tmp_path, callback, rolling, best, enable_checkpointing=True)
    callback.close()
    trial = smd.create_trial(str(run))
    marked = {f"{Path(item.path).parent.name}/{Path(item.path).name}": item for item in trial.checkpoints()}
    steps = {name: trial.mode_step(item.step) for name, item in marked.items() if "rolling" in name}
    assert steps == {f"rolling/step={step}.ckpt": step - 1 for step in (2, 4, 6)} | {"rolling/last.ckpt": 5}
    ended = max(item.step for item in marked.values())
    assert {marked["best/best.ckpt"].step, marked["best/last.ckpt"].step} == {ended}
