"""Gradients that a training computes otherwise than by backward passes, and sets itself."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.runs import diagnose

STEPS = 40


def found(place, train):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with smdebug.start(str(place)):
        for _ in range(STEPS):
            train(model, optimizer)
    return {rule for issue in diagnose(str(place)).issues for rule in issue.all_rules}


def squared_error(model):
    given = torch.randn(16, 8)
    return F.mse_loss(model(given), given[:, :1])


def trained_elsewhere(model):
    trained = copy.deepcopy(model)
    own = torch.optim.SGD(trained.parameters(), 0.1)
    for _ in range(3):
        own.zero_grad()
        squared_error(trained).backward()
        own.step()
    return zip(model.parameters(), trained.parameters(), strict=True)


def reptile(model, optimizer):
    pairs = trained_elsewhere(model)
    optimizer.zero_grad()
    for parameter, other in pairs:
        parameter.grad = parameter.data - other.data
    optimizer.step()


def reptile_of_one_vector(model, optimizer):
    pairs = trained_elsewhere(model)
    flat = torch.cat([(parameter - other).detach().flatten() for parameter, other in pairs])
    sizes = [parameter.numel() for parameter in model.parameters()]
    for parameter, part in zip(model.parameters(), flat.split(sizes), strict=True):
        parameter.grad = part.view_as(parameter)
    optimizer.step()


def mean_of_copies(model, optimizer):
    """Write the gradients of two copies into those that are there."""
    copies = [copy.deepcopy(model), copy.deepcopy(model)]
    for each in copies:
        each.zero_grad()
        squared_error(each).backward()
    for parameter, *others in zip(model.parameters(), *[each.parameters() for each in copies], strict=True):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.copy_(sum(other.grad for other in others) / 2)
    optimizer.step()


@pytest.mark.parametrize("train", [reptile, reptile_of_one_vector, mean_of_copies])
def test_a_gradient_that_is_set_needs_no_reset(tmp_path, train):
    assert "GradientsNotReset" not in found(tmp_path / "run", train)


def one_pass(model, optimizer):
    squared_error(model).backward()
    optimizer.step()


def clipped(model, optimizer):
    squared_error(model).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()


def passes_of_another(model, optimizer):
    list(trained_elsewhere(model))
    one_pass(model, optimizer)


def passes_that_replace_gradients(model, optimizer):
    squared_error(model).backward(create_graph=True)
    optimizer.step()


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("train", [one_pass, clipped, passes_of_another, passes_that_replace_gradients])
def test_a_gradient_that_passes_add_to_needs_a_reset(tmp_path, train):
    assert "GradientsNotReset" in found(tmp_path / "run", train)


def of_copies(model, optimizer):
    """Let a copy, which alone is called, compute the gradients for the parameters that are trained."""
    inner = copy.deepcopy(model)
    squared_error(inner).backward()
    for parameter, other in zip(model.parameters(), inner.parameters(), strict=True):
        parameter.grad = other.grad
    optimizer.step()


def for_copies(model, optimizer):
    """Make steps with what the model was when the training began: nothing gives it gradients."""
    model.zero_grad()
    inner = copy.deepcopy(model)
    squared_error(inner).backward()
    optimizer.step()


@pytest.mark.parametrize(("train", "is_found"), [(of_copies, False), (for_copies, True)])
def test_an_optimizer_whose_parameters_have_gradients_is_no_stranger_to_the_model(tmp_path, train, is_found):
    assert ("LostUpdates" in found(tmp_path / "run", train)) is is_found
