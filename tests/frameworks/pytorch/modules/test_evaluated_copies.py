"""Copies of the untrained model that are evaluated in the place of the trained one."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.modules import module as all_modules
from torch.optim.swa_utils import AveragedModel

import smdebug
from smdebug import modes
from smdebug.pytorch.modules.copies import Copies
from smdebug.pytorch.modules.evaluated_copies import EvaluatedCopies
from smdebug.trials import create_trial

pytestmark = pytest.mark.usefixtures("nothing_was_compiled")
EVERY, EPOCHS = 6, 5
SEARCHED = 4
"""After so many steps, modules are looked at only while nothing is trained."""


def evaluate(model, batches=4):
    model.eval()
    with torch.no_grad():
        for _ in range(batches):
            F.mse_loss(model(torch.randn(16, 4)), torch.randn(16, 2))
    model.train()


def are_sought():
    """Whether copies are looked for among all modules that are called."""
    looking = all_modules._global_forward_pre_hooks.values()
    return any(isinstance(getattr(each, "__self__", None), Copies | EvaluatedCopies) for each in looking)


def noted(place, model, after_epoch, each_step=lambda rows: None):
    """Train, and evaluate after each epoch; return what is noted of a copy at each saved step."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    steps = 0
    with smdebug.start(str(place)):
        for _ in range(EPOCHS):
            for _ in range(EVERY):
                rows = torch.randn(16, 4)
                each_step(rows)
                loss = F.mse_loss(model(rows), torch.randn(16, 2))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                assert steps < SEARCHED or not are_sought()
                steps += 1
            after_epoch()
    trial = create_trial(str(place))
    return [trial.facts(step).get("evaluated_copy") for step in trial.steps(mode=modes.TRAIN)[:12]]


def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def test_the_evaluations_of_a_copy_are_counted(tmp_path):
    model = net()
    mean = copy.deepcopy(model)
    found = noted(tmp_path / "run", model, lambda: evaluate(mean))
    assert {"model": "Sequential", "of": "Sequential_0.weight", "evaluations": 1} in found


def test_the_mean_of_pytorch_is_named_by_its_class(tmp_path):
    model = net()
    mean = AveragedModel(model)
    found = noted(tmp_path / "run", model, lambda: evaluate(mean))
    assert {each["model"] for each in found if each} == {"AveragedModel"}


def follow(mean, model):
    with torch.no_grad():
        for own, new in zip(mean.parameters(), model.parameters(), strict=True):
            own.lerp_(new, 0.1)


def test_a_copy_that_follows_is_not_noted(tmp_path):
    model = net()
    mean = copy.deepcopy(model)
    assert not any(noted(tmp_path / "run", model, lambda: evaluate(mean), lambda rows: follow(mean, model)))


def test_a_copy_beside_the_model_is_not_noted(tmp_path):
    model = net()
    first = copy.deepcopy(model)

    def both():
        evaluate(first)
        evaluate(model)

    assert not any(noted(tmp_path / "run", model, both))


def test_a_copy_that_is_called_at_each_step_is_not_noted(tmp_path):
    model = net()
    target = copy.deepcopy(model)

    def compute(rows):
        with torch.no_grad():
            F.mse_loss(target(rows), rows[:, :2])

    assert not any(noted(tmp_path / "run", model, lambda: evaluate(target), compute))


@pytest.mark.parametrize("other", [net(), nn.Linear(4, 2)])
def test_another_model_is_not_noted(tmp_path, other):
    assert not any(noted(tmp_path / "run", net(), lambda: evaluate(other)))


class Reader(nn.Module):
    """A model that never reads the first row of its table."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(6, 4), nn.Linear(4, 2)

    def forward(self, rows):
        return self.last(self.words(1 + rows[:, 0].long().abs() % 5))


def test_a_part_of_a_mean_that_does_not_move_is_not_noted(tmp_path):
    model = Reader()
    mean = copy.deepcopy(model)
    assert not any(noted(tmp_path / "run", model, lambda: evaluate(mean), lambda rows: follow(mean, model)))


def test_a_part_that_is_evaluated_and_moves_in_neither_is_not_noted(tmp_path):
    model = Reader()
    table = copy.deepcopy(model.words)

    def embed():
        with torch.no_grad():
            for _ in range(4):
                F.mse_loss(table(torch.arange(6)), torch.zeros(6, 4))

    assert not any(noted(tmp_path / "run", model, embed))


def test_a_copy_whose_results_are_compared_with_each_other_is_not_noted(tmp_path):
    model = net()
    codes = copy.deepcopy(model)

    def compare():
        with torch.no_grad():
            for _ in range(4):
                F.mse_loss(codes(torch.randn(16, 4)), codes(torch.randn(16, 4)))

    assert not any(noted(tmp_path / "run", model, compare))
