"""Generators and discriminators, and the labels that each of them is told."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.trials import create_trial

BCE = F.binary_cross_entropy_with_logits
ROWS = 16


def train(place, *, real=1.0, made=0.0, wanted=1.0, criterion=BCE, step_of=None, between=None):
    """Train a generator and a discriminator with these labels; return what LossInput finds."""
    torch.manual_seed(0)
    with smdebug.start(str(place)):
        maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        judge = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
        for_maker = torch.optim.Adam(maker.parameters(), 1e-3)
        for_judge = torch.optim.Adam(judge.parameters(), 1e-3)
        for _ in range(12):
            (step_of or tutorial)(maker, judge, for_maker, for_judge, real, made, wanted, criterion)
            if between is not None:
                between(maker, judge)
    (result,) = evaluate(create_trial(str(place)), ["LossInput"])
    assert not result.error
    return result.found[0].findings if result.found else []


def like(scores, label):
    return torch.full_like(scores, label)


def tutorial(maker, judge, for_maker, for_judge, real, made, wanted, criterion):
    """The judge first, in two passes."""
    for_judge.zero_grad()
    scores = judge(torch.randn(ROWS, 8) + 1).view(-1)
    criterion(scores, like(scores, real)).backward()
    fake = maker(torch.randn(ROWS, 4))
    scores = judge(fake.detach()).view(-1)
    criterion(scores, like(scores, made)).backward()
    for_judge.step()
    for_maker.zero_grad()
    scores = judge(fake).view(-1)
    criterion(scores, like(scores, wanted)).backward()
    for_maker.step()


def maker_first(maker, judge, for_maker, for_judge, real, made, wanted, criterion):
    """The maker first, and the judge with one loss."""
    fake = maker(torch.randn(ROWS, 4))
    scores = judge(fake)
    for_maker.zero_grad()
    (0.5 * criterion(scores, like(scores, wanted)) + 0.1 * fake.square().mean()).backward()
    for_maker.step()
    for_judge.zero_grad()
    given, shown = judge(torch.randn(ROWS, 8) + 1), judge(fake.detach())
    ((criterion(given, like(given, real)) + criterion(shown, like(shown, made))) / 2).backward()
    for_judge.step()


def minimax(maker, judge, for_maker, for_judge, real, made, wanted, criterion):
    """The maker makes the loss of the judge large: its label is that of the judge, with a minus."""
    maker_first(maker, judge, for_maker, for_judge, real, made, wanted, criterion)
    for_maker.zero_grad()
    scores = judge(maker(torch.randn(ROWS, 4)))
    (-criterion(scores, like(scores, made))).backward()
    for_maker.step()


@pytest.mark.parametrize("step_of", [tutorial, maker_first])
@pytest.mark.parametrize("criterion", [BCE, F.mse_loss])
def test_a_generator_that_learns_to_be_recognised_is_found(tmp_path, step_of, criterion):
    (found,) = train(tmp_path / "run", wanted=0.0, step_of=step_of, criterion=criterion)
    assert found["cause"] == "loss input"
    assert found["tensor"] == "Sequential-2_output_0" if step_of is tutorial else "Sequential_output_0"
    assert "recognised" in found["title"]
    assert found["since"] <= 2


@pytest.mark.parametrize("step_of", [tutorial, maker_first])
def test_a_discriminator_that_is_told_the_same_of_both_is_found(tmp_path, step_of):
    (found,) = train(tmp_path / "run", made=1.0, step_of=step_of)
    assert found["title"] == "Real and generated rows have the same label"


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"real": 0.9, "made": 0.1, "wanted": 0.9},
        {"real": 0.0, "made": 1.0, "wanted": 0.0},
        {"real": 1.0, "made": -1.0, "wanted": 0.0, "criterion": F.mse_loss},
    ],
    ids=["usual", "smoothed", "turned", "least squares"],
)
@pytest.mark.parametrize("step_of", [tutorial, maker_first, minimax])
def test_labels_that_belong_together_pass(tmp_path, labels, step_of):
    assert train(tmp_path / "run", step_of=step_of, **labels) == []


def test_labels_that_are_turned_now_and_then_pass(tmp_path):
    turns = iter([False, True, False, False, True, False] * 3)

    def step_of(maker, judge, for_maker, for_judge, real, made, wanted, criterion):
        labels = (made, real) if next(turns) else (real, made)
        tutorial(maker, judge, for_maker, for_judge, *labels, wanted, criterion)

    assert train(tmp_path / "run", step_of=step_of) == []


def test_a_copy_of_a_model_is_not_watched(tmp_path):
    """A mean of weights is copied in the middle of a step, with the callbacks that its model has."""

    def between(maker, judge):
        copied = copy.deepcopy(judge)
        assert copied(torch.randn(2, 8)).shape == (2, 1)

    assert train(tmp_path / "run", between=between) == []
