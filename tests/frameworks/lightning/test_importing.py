"""What Lightning's CSVLogger writes, imported."""

import lightning
import torch
from lightning.pytorch.callbacks import LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from smdebug.importing import find_runs, import_run
from smdebug.mode_keys import ModeKeys
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.trials import create_trial


class Module(lightning.LightningModule):
    def __init__(self, rate, width):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Linear(4, 2)

    def training_step(self, batch, number):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, number):
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.rate)


def test_the_log_of_each_version_becomes_a_run(tmp_path):
    torch.manual_seed(0)
    inputs = torch.randn(64, 4)
    batches = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=8)
    for rate in (0.1, 0.2):
        trainer = lightning.Trainer(
            max_epochs=4,
            accelerator="cpu",
            logger=CSVLogger(tmp_path),
            callbacks=[LearningRateMonitor("step")],
            log_every_n_steps=1,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        trainer.fit(Module(rate, 3), batches, batches)
    runs = find_runs(tmp_path / "lightning_logs")
    assert [(run.format, run.name) for run in runs] == [("csv", "version_0"), ("csv", "version_1")]
    done = import_run(runs[1], tmp_path / "run")
    assert {name: str(target) for name, target in done.series.items()} == {
        "epoch": "epoch (train)",
        "lr-SGD": "learning_rate/0/0 (train)",
        "train_loss_epoch": "loss_epoch (train)",
        "train_loss_step": "loss (train)",
        "val_loss": "loss (eval)",
    }
    assert done.config == {"rate": 0.2, "width": 3}
    trial = create_trial(tmp_path / "run")
    loss = trial.series("loss")
    assert loss.of(ModeKeys.TRAIN).steps.tolist() == list(range(32))
    assert loss.of(ModeKeys.EVAL).steps.tolist() == [7, 15, 23, 31]
    assert set(trial.series("learning_rate/0/0").values) == {0.2}
    assert diagnose(tmp_path / "run").issues == ()
