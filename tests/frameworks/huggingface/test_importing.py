"""The `trainer_state.json` that the Trainer of transformers writes, imported."""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from smdebug.importing import find_runs, import_run
from smdebug.mode_keys import ModeKeys
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.trials import create_trial


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, inputs, labels):
        logits = self.net(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def test_the_history_of_a_training_becomes_a_run(tmp_path):
    torch.manual_seed(0)
    inputs = torch.randn(64, 4)
    rows = [{"inputs": row, "labels": (row[0] > 0).long()} for row in inputs]
    arguments = TrainingArguments(
        str(tmp_path / "out"),
        num_train_epochs=4,
        per_device_train_batch_size=8,
        learning_rate=0.1,
        logging_steps=2,
        eval_strategy="steps",
        eval_steps=8,
        save_steps=16,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(Classifier(), arguments, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    trainer.save_state()
    (found,) = find_runs(tmp_path / "out")
    assert (found.format, found.name) == ("trainer", "out")
    done = import_run(found, tmp_path / "run")
    named = {name: str(target) for name, target in done.series.items()}
    assert named["loss"] == "loss (train)"
    assert named["eval_loss"] == "loss (eval)"
    assert named["learning_rate"] == "learning_rate/0/0 (train)"
    assert named["grad_norm"] == "grad_norm (train)"
    assert done.config["num_train_epochs"] == 4
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    loss = create_trial(tmp_path / "run").series("loss")
    assert loss.of(ModeKeys.TRAIN).steps.tolist() == [entry["step"] for entry in logged]
    assert loss.of(ModeKeys.TRAIN).values.tolist() == [entry["loss"] for entry in logged]
    assert loss.of(ModeKeys.EVAL).steps.tolist() == [8, 16, 24, 32]
    assert diagnose(tmp_path / "run").issues == ()
