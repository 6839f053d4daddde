"""Errors that a script writes out have facts of their targets."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn

import smdebug
from smdebug import modes
from smdebug.trials import create_trial


def facts_of(place, error, targets, outputs=1):
    """Train one step with an error of the output and the targets; return the facts of its loss."""
    torch.manual_seed(0)
    model = nn.Linear(5, outputs)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with smdebug.start(str(place)):
        loss = error(model(torch.randn(len(targets), 5)), targets)
        loss.backward()
        optimizer.step()
    return create_trial(str(place)).facts(0, modes.TRAIN)["loss"]


COLUMN = torch.tensor([[3.0], [3.0], [7.0], [8.0]])
ROW = COLUMN[:, 0]


@pytest.mark.parametrize(
    ("error", "targets", "criterion", "reduction"),
    [
        (lambda a, b: ((a - b) ** 2).mean(), COLUMN, "mean squared error", "mean"),
        (lambda a, b: (b - a).square().mean(), COLUMN, "mean squared error", "mean"),
        (lambda a, b: ((a - b) ** 2).sum() / 4, COLUMN, "mean squared error", "sum"),
        (lambda a, b: torch.mean((a.squeeze(-1) - b).pow(2)), ROW, "mean squared error", "mean"),
        (lambda a, b: 0.5 * ((a.view(-1) - b) ** 2).mean(), ROW, "mean squared error", "mean"),
        (lambda a, b: (a - b).abs().mean(), COLUMN, "mean absolute error", "mean"),
        (lambda a, b: (b - a.squeeze()).abs().sum(), ROW, "mean absolute error", "sum"),
    ],
)
def test_a_written_error_has_its_targets(tmp_path, error, targets, criterion, reduction):
    loss = facts_of(tmp_path / "run", error, targets)
    (term,) = loss["terms"]
    assert (term["criterion"], term["reduction"], term["of_a_layer"]) == (criterion, reduction, True)
    assert (term["lowest"], term["highest"]) == (3.0, 8.0)  # to the bit, as they are rounded
    assert term["means"] == pytest.approx([5.25])
    assert term["changes"] == pytest.approx(2 / 3)
    assert ("constant" in term) == (criterion == "mean absolute error")
    assert loss["value"] > 0


@pytest.mark.parametrize(
    "error",
    [
        lambda a, b: ((a - b) ** 4).mean(),
        lambda a, b: ((2 * a - b) ** 2).mean(),  # another number than the model has returned
        lambda a, b: (a**2).mean(),
        lambda a, b: ((a - a.mean()) ** 2).mean(),  # of which both are learnt
        lambda a, b: torch.sub(a, b, alpha=2).square().mean(),
        lambda a, b: ((a - b) ** 2).mean(0).sum(),
    ],
)
def test_other_losses_have_no_term(tmp_path, error):
    assert facts_of(tmp_path / "run", error, COLUMN)["terms"] == []


def test_pairs_that_are_compared_by_mistake_have_no_targets(tmp_path):
    loss = facts_of(tmp_path / "run", lambda a, b: ((a - b) ** 2).mean(), ROW)
    assert (loss["terms"], loss["broadcast"]) == ([], [4, 4])


def test_several_columns_keep_their_places(tmp_path):
    targets = torch.tensor([[1.0, 20.0], [3.0, 40.0]])
    (term,) = facts_of(tmp_path / "run", lambda a, b: (a - b).square().mean(), targets, outputs=2)["terms"]
    assert term["means"] == pytest.approx([2.0, 30.0])
    assert term["rows"] == term["target_rows"] == 2


def test_the_bits_of_the_training_stay(tmp_path):
    def weights(watched):
        torch.manual_seed(1)
        model = nn.Linear(5, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        rows, wanted = torch.randn(16, 5), torch.randn(16, 1)
        with smdebug.start(str(tmp_path / "run")) if watched else nullcontext():
            for _ in range(5):
                optimizer.zero_grad()
                ((model(rows) - wanted) ** 2).mean().backward()
                optimizer.step()
        return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])

    before = weights(watched=False)
    assert torch.equal(before, weights(watched=True))


def test_targets_that_would_take_long_are_left_out(tmp_path):
    loss = facts_of(
        tmp_path / "run", lambda a, b: (a - b).square().mean(), torch.zeros(513, 512), outputs=512
    )
    assert loss["terms"] == []
