"""Names of a log, as series and modes."""

from __future__ import annotations

import pytest

from smdebug.files.names import FIRST_LEARNING_RATE
from smdebug.importing.names import targets_of
from smdebug.importing.records import Target
from smdebug.mode_keys import ModeKeys

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def targets(*names: str) -> dict[str, Target]:
    return targets_of(dict.fromkeys(names, 100))


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        ("loss", "val_loss"),  # Keras
        ("loss", "eval_loss"),  # transformers
        ("train/loss", "eval/loss"),  # transformers in TensorBoard and W&B
        ("train_loss", "val_loss"),  # Lightning
        ("Loss/train", "Loss/val"),
        ("train/epoch_loss", "validation/epoch_loss"),  # Keras in TensorBoard
        ("train_loss_step", "val_loss"),
        ("train.loss", "valid.loss"),
        ("training/loss", "validation/loss"),
        ("train/total_loss", "val/total_loss"),
        ("train/nll_loss", "dev/nll_loss"),
    ],
)
def test_the_loss_of_training_and_that_of_validation_are_one_series_in_two_modes(training, validation):
    assert targets(training, validation) == {
        training: Target("loss", TRAIN),
        validation: Target("loss", EVAL),
    }


@pytest.mark.parametrize(
    "name", ["lr", "learning_rate", "train/learning_rate", "lr-Adam", "LearningRate/lr", "lr_0"]
)
def test_a_learning_rate_is_the_one_that_rules_read(name):
    assert targets(name)[name] == Target(FIRST_LEARNING_RATE, TRAIN)


def test_of_several_learning_rates_each_is_kept():
    found = targets("lr-Adam/pg1", "lr-Adam/pg2")
    assert {target.series for target in found.values()} == {FIRST_LEARNING_RATE, "learning_rate/1/0"}


def test_metrics_keep_their_names_and_get_the_modes_apart():
    assert targets("train/accuracy", "val/accuracy", "grad_norm") == {
        "grad_norm": Target("grad_norm", TRAIN),
        "train/accuracy": Target("accuracy", TRAIN),
        "val/accuracy": Target("accuracy", EVAL),
    }


def test_of_two_names_for_the_same_the_one_with_more_values_is_the_loss():
    """The Trainer of transformers logs the mean of all losses as `train_loss` in its last entry."""
    found = targets_of({"loss": 40, "train_loss": 1})
    assert found == {"loss": Target("loss", TRAIN), "train_loss": Target("train_loss", TRAIN)}


def test_the_loss_of_a_test_is_not_one_of_the_validation():
    found = targets("train/loss", "val/loss", "test/loss")
    assert found["test/loss"] == Target("test/loss", EVAL)


def test_a_log_of_a_validation_alone_has_its_loss():
    assert targets("val_loss") == {"val_loss": Target("loss", EVAL)}


def test_names_that_the_library_reserves_are_moved_aside():
    found = targets("smdebug/facts", "system/gpu", "logged/x")
    assert {target.series for target in found.values()} == {
        "logged/smdebug/facts",
        "logged/system/gpu",
        "logged/logged/x",
    }


def test_no_two_names_become_the_same_series_of_a_mode():
    names = ["loss", "train/loss", "train_loss", "Loss", "loss/train", "Loss/train", "training_loss", "LOSS"]
    found = targets(*names)
    assert len(set(found.values())) == len(names)


@pytest.mark.parametrize(
    "name", ["训练/损失", "потеря", "émotion", "🦊", "a" * 300, "/", "_", "train/", "/loss"]
)
def test_any_name_becomes_a_series(name):
    assert targets(name)[name].series
