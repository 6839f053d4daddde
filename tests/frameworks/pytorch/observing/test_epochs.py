"""The epochs of a training are recorded by themselves, from the loader that it iterates over."""

import timeit

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

import smdebug.pytorch as smd
from smdebug.files.names import EPOCHS
from smdebug.pytorch.listening.epochs import Epochs
from smdebug.pytorch.listening.passes import PASSES
from smdebug.trials import create_trial

INPUTS = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
BATCHES = 5


def loader():
    return DataLoader(TensorDataset(INPUTS, INPUTS.sum(1)), batch_size=len(INPUTS) // BATCHES)


class Training:
    def __init__(self, place):
        self.model = nn.Linear(4, 1)
        self.hook = smd.Hook(str(place))
        self.hook.register_module(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def fit(self, batch):
        inputs, targets = batch
        self.model.train()
        self.optimizer.zero_grad()
        F.mse_loss(self.model(inputs)[:, 0], targets).backward()
        self.optimizer.step()

    def evaluate(self, batches):
        self.model.eval()
        with torch.no_grad():
            for inputs, _ in batches:
                self.model(inputs)

    def epochs(self):
        self.hook.close()
        trial = create_trial(self.hook.out_dir)
        if EPOCHS not in trial.observations.series_names():
            return []
        found = trial.series(EPOCHS)
        return list(zip(found.mode_steps.tolist(), found.values.tolist(), strict=True))


@pytest.fixture
def training(tmp_path):
    made = Training(tmp_path / "run")
    made.hook.follow_training_flag()
    return made


def test_each_pass_over_the_data_of_the_training_is_an_epoch(training):
    train, validation = loader(), loader()
    for _ in range(3):
        for batch in train:
            training.fit(batch)
        training.evaluate(validation)
    assert training.epochs() == [(0, 0.0), (5, 1.0), (10, 2.0)]


def test_looking_at_a_batch_or_evaluating_the_training_data_begins_no_epoch(training):
    train, other = loader(), loader()
    next(iter(train))
    for _ in range(2):
        for batch in train:
            next(iter(other))  # a picture of what the model does, say
            training.fit(batch)
        training.evaluate(train)
    assert training.epochs() == [(0, 0.0), (5, 1.0)]


def test_a_loader_that_is_made_again_for_each_epoch_continues_to_count(training):
    for _ in range(3):
        for batch in loader():
            training.fit(batch)
    assert training.epochs() == [(0, 0.0), (5, 1.0), (10, 2.0)]


def test_an_evaluation_within_an_epoch_begins_none(training):
    train, validation = loader(), loader()
    for _ in range(2):
        for at, batch in enumerate(train):
            training.fit(batch)
            if at == 2:
                training.evaluate(validation)
    assert training.epochs() == [(0, 0.0), (5, 1.0)]


def test_batches_that_come_from_no_loader_have_no_epochs(training):
    for _ in range(6):
        training.fit((INPUTS, INPUTS.sum(1)))
    assert training.epochs() == []


def test_a_step_that_begins_no_epoch_costs_under_a_microsecond():
    epochs = Epochs()
    epochs.passes_seen = PASSES.count
    seconds = min(timeit.repeat(lambda: epochs.passes_seen != PASSES.count, number=10_000, repeat=5)) / 10_000
    assert seconds < 1e-6
