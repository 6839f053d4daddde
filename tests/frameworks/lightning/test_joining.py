"""`smdebug.start` before Lightning's Trainer: the callback joins by itself, and records nothing twice."""

import pickle
from pathlib import Path

import lightning
import numpy as np
import pytest
import torch
from torch import nn

import smdebug
from smdebug import modes
from smdebug.files.names import EPOCHS
from smdebug.lightning import Callback
from smdebug.lightning.joined import Joining
from smdebug.runs.metrics import measured_sizes
from smdebug.trials import create_trial
from tests.frameworks.lightning.test_callback import Module, data, fit
from tests.frameworks.scripts import python


@pytest.fixture
def place(tmp_path):
    return tmp_path / "run"


def watched(place, tmp_path, *callbacks, **how):
    with smdebug.start(place) as watching:
        module = fit(tmp_path, *callbacks, **how)
    assert watching.runs == [str(place)]
    return create_trial(place), module


def test_steps_are_those_of_the_trainer_and_the_sanity_check_is_none(place, tmp_path):
    trial, _ = watched(place, tmp_path, epochs=4)
    loss = trial.series("loss")
    assert loss.of(modes.TRAIN).steps.tolist() == list(range(12))
    assert loss.of(modes.EVAL).steps.tolist() == [2, 5, 8, 11]
    epochs = trial.series(EPOCHS)
    assert (epochs.steps.tolist(), epochs.values.tolist()) == ([0, 3, 6, 9], [0, 1, 2, 3])


def test_totals_of_an_evaluation_are_kept_at_its_training_step(place, tmp_path):
    class Look(lightning.Callback):
        def on_validation_end(self, trainer, module):
            if not trainer.sanity_checking:
                logged.append(float(trainer.callback_metrics["val_loss"]))

    logged = []
    trial, _ = watched(place, tmp_path, Look(), epochs=3)
    assert trial.series("val_loss").steps.tolist() == [2, 5, 8]
    np.testing.assert_allclose(trial.series("val_loss").values, logged, rtol=1e-6)
    np.testing.assert_allclose(trial.series("loss").of(modes.EVAL).values, logged, rtol=1e-6)


def test_accumulated_batches_are_one_step_of_all_their_samples(place, tmp_path):
    trial, module = watched(place, tmp_path, epochs=4, accumulate_grad_batches=2)
    assert (
        trial.series("loss").of(modes.TRAIN).steps.tolist() == list(range(8)) == list(range(len(module.used)))
    )
    sizes = measured_sizes(trial)
    assert sizes["batch_size"] == 8
    assert sizes["samples_per_second"] > 0
    assert "tokens_per_second" not in sizes


def test_arguments_are_configuration_and_checkpoints_are_marked(place, tmp_path):
    keeper = lightning.pytorch.callbacks.ModelCheckpoint(
        str(tmp_path / "kept"), every_n_train_steps=2, save_top_k=-1, filename="{step}"
    )
    trial, _ = watched(place, tmp_path, keeper, enable_checkpointing=True)
    assert trial.origin.config["max_epochs"] == 2
    marked = [(item.step, Path(item.path).name) for item in trial.checkpoints()]
    assert marked == [(1, "step=2.ckpt"), (3, "step=4.ckpt"), (5, "step=6.ckpt")]


@pytest.mark.parametrize("given", [True, False])
def test_a_resumed_training_has_the_steps_of_its_trainer(place, tmp_path, given):
    keeper = lightning.pytorch.callbacks.ModelCheckpoint(str(tmp_path), filename="last")
    fit(tmp_path, keeper, enable_checkpointing=True)
    with smdebug.start(tmp_path / "joined" if given else place):
        callbacks = [Callback(str(place))] if given else []
        fit(tmp_path, *callbacks, epochs=3, resumed=tmp_path / "last.ckpt")
        for callback in callbacks:
            callback.close()
    assert create_trial(place).series("loss").of(modes.TRAIN).steps.tolist() == [6, 7, 8]


class TakingTurns(Module):
    """Its two optimizers update it once a batch each."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), 0.1) for part in (self.net[0], self.net[2])]

    def training_step(self, batch, index):
        for optimizer in self.optimizers():
            optimizer.zero_grad()
            loss = self.loss(batch)
            self.manual_backward(loss)
            optimizer.step()
        return loss.detach()


def test_a_resumed_training_with_two_optimizers_has_the_steps_of_its_batches(place, tmp_path):
    def fitted(**more):
        trainer = trainer_in(tmp_path, **more)
        trainer.fit(TakingTurns(), data(), ckpt_path=tmp_path / "last.ckpt" if more else None)
        return trainer

    fitted().save_checkpoint(tmp_path / "last.ckpt")
    with smdebug.start(place):
        assert fitted(max_epochs=3).global_step == 18, "two updates of each batch"
    assert create_trial(place).series("loss").of(modes.TRAIN).steps.tolist() == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("accumulated", [1, 2])
def test_a_joined_training_has_the_same_results(place, tmp_path, accumulated):
    _, joined = watched(place, tmp_path, accumulate_grad_batches=accumulated)
    alone = fit(tmp_path, accumulate_grad_batches=accumulated).state_dict()
    assert all(torch.equal(value, alone[name]) for name, value in joined.state_dict().items())


def test_gradients_are_those_that_the_optimizer_has_used(place, tmp_path):
    trial, module = watched(place, tmp_path)
    name, steps = "gradient/Module_net.0.weight", trial.steps(modes.TRAIN)
    measured = [trial.statistics(step, modes.TRAIN).row(name)["rms"] for step in steps]
    used = [float(module.used[step].square().mean().sqrt()) for step in steps]
    assert len(steps) > 3
    assert measured == pytest.approx(used, rel=1e-4)


def test_a_callback_that_a_person_gives_wins_and_nothing_is_recorded_twice(place, tmp_path, caplog):
    callback = Callback(str(tmp_path / "mine"))
    with smdebug.start(place) as watching:
        fit(tmp_path, callback)
    callback.close()
    trial = create_trial(tmp_path / "mine")
    assert watching.runs == []
    assert not place.exists()
    assert len(trial.series("loss").of(modes.TRAIN)) == 6
    assert "no training" not in caplog.text


def test_two_trainers_continue_one_run(place, tmp_path):
    with smdebug.start(place) as watching:
        fit(tmp_path, epochs=1)
        fit(tmp_path, epochs=2)
    trial = create_trial(place)
    assert watching.runs == [str(place)]
    assert trial.series("loss").of(modes.TRAIN).steps.tolist() == list(range(9))
    assert trial.series("val_loss").steps.tolist() == [2, 5, 8]


def trainer_in(tmp_path, **more):
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    given = {"accelerator": "cpu", "max_epochs": 1, "enable_checkpointing": False, **quiet, **more}
    return lightning.Trainer(default_root_dir=str(tmp_path), **given)


def test_an_evaluation_alone_is_no_training_and_one_after_it_belongs_to_its_last_step(place, tmp_path):
    module = Module()
    with smdebug.start(place) as watching:
        trainer = trainer_in(tmp_path)
        trainer.validate(module, data(), verbose=False)
        assert watching.runs == []
        trainer.fit(module, data())
        trainer.validate(module, data(), verbose=False)
    assert create_trial(place).series("val_loss").steps.tolist() == [2]


def test_a_training_that_is_resumed_by_the_trainer_is_watched(place, tmp_path):
    trainer = trainer_in(tmp_path)
    trainer.fit(Module(), data())
    trainer.save_checkpoint(tmp_path / "first.ckpt")
    with smdebug.start(place):
        again = trainer_in(tmp_path, max_epochs=3)
        again.fit(Module(), data(), ckpt_path=tmp_path / "first.ckpt")
    assert again.global_step == 9
    assert len(create_trial(place).series("loss").of(modes.TRAIN)) == 6


def test_a_loop_of_ones_own_after_the_trainer_is_a_training_of_its_own(place, tmp_path):
    with smdebug.start(place) as watching:
        module = fit(tmp_path, epochs=1)
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        for batch in data():
            optimizer.zero_grad()
            module.loss(batch).backward()
            optimizer.step()
    assert len(watching.runs) == 2
    losses = [len(create_trial(run).series("loss").of(modes.TRAIN)) for run in watching.runs]
    assert losses == [3, 3]


def test_a_training_that_raises_leaves_the_steps_before_and_its_own_error(place, tmp_path):
    class Breaks(lightning.Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            if trainer.global_step == 2:
                raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"), smdebug.start(place):
        fit(tmp_path, Breaks())
    assert create_trial(place).steps(modes.TRAIN) == [0, 1, 2]


def test_a_trainer_that_lacks_something_trains_on_and_that_is_said_once(place, tmp_path, monkeypatch, caplog):
    monkeypatch.delattr(lightning.Trainer, "is_last_batch")
    with smdebug.start(place):
        module = fit(tmp_path, epochs=2, accumulate_grad_batches=2)
    assert len(module.used) == 4
    said = [record for record in caplog.records if "not watched from here on" in record.message]
    assert len(said) == 1
    assert "is_last_batch" in said[0].message


def test_asked_to_stop_the_trainer_ends(place, tmp_path):
    class Asking(lightning.Callback):
        def on_train_batch_end(self, trainer, *given):
            if trainer.global_step == 2:
                (place / "control").mkdir()
                (place / "control" / "stop").write_text('{"reason": "enough"}')

    with smdebug.start(place) as watching:
        watching._options["look_for_stop"] = 0  # seconds
        module = fit(tmp_path, Asking(), epochs=50)
    assert len(module.used) < 6


def test_a_copy_of_the_trainer_has_a_callback_of_its_own(place, tmp_path):
    with smdebug.start(place):
        trainer = trainer_in(tmp_path)
    (joined,) = [known for known in trainer.callbacks if isinstance(known, Joining)]
    assert type(pickle.loads(pickle.dumps(joined))) is type(joined)


def test_fabric_has_no_callback_and_is_watched_as_any_loop(place):
    with smdebug.start(place):
        fabric = lightning.Fabric(accelerator="cpu", devices=1)
        net = nn.Linear(4, 2)
        model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), 0.1))
        for inputs, labels in fabric.setup_dataloaders(data()):
            optimizer.zero_grad()
            fabric.backward(nn.functional.cross_entropy(model(inputs), labels))
            optimizer.step()
    assert create_trial(place).series("loss").of(modes.TRAIN).steps.tolist() == [0, 1, 2]


OF_THE_OTHER_PACKAGE = """
import sys

import pytorch_lightning
import torch
from torch import nn

class Module(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
    def training_step(self, batch, number):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

rows = torch.utils.data.TensorDataset(torch.randn(12, 4), torch.randint(0, 2, (12,)))
pytorch_lightning.Trainer(
    accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False
).fit(Module(), torch.utils.data.DataLoader(rows, batch_size=4))
assert "lightning" not in sys.modules
assert not {"transformers.trainer", "smdebug.huggingface.joined"} & set(sys.modules)
"""


def test_an_unchanged_script_of_the_other_package_is_joined_and_imports_nothing_more(tmp_path):
    (tmp_path / "train.py").write_text(OF_THE_OTHER_PACKAGE)
    ended = python("-m", "smdebug.run", "--out-dir", "run", "train.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    trial = create_trial(tmp_path / "run")
    assert trial.series("loss").steps.tolist() == list(range(6))
    assert (trial.origin.config["max_epochs"], measured_sizes(trial)["batch_size"]) == (2, 4)
