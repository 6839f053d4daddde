"""An optimizer that steps twice on the same gradients, and trainings in which two steps belong together."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.trials import create_trial

STEPS = 8


def found(place, step):
    """What GradientsNotReset says of a training with this step."""
    torch.manual_seed(0)
    with smdebug.start(str(place)):
        model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        for _ in range(STEPS):
            step(model, optimizer, torch.randn(16, 6), torch.randint(0, 3, (16,)))
    (result,) = evaluate(create_trial(str(place)), ["GradientsNotReset"])
    assert not result.error
    return {finding["title"] for step in result.found for finding in step.findings}


def learn(model, optimizer, rows, labels):
    optimizer.zero_grad()
    F.cross_entropy(model(rows), labels).backward()
    optimizer.step()


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_second_step_without_a_backward_pass_is_found(tmp_path, set_to_none):
    def twice(model, optimizer, rows, labels):
        optimizer.zero_grad(set_to_none=set_to_none)
        F.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        optimizer.step()

    assert found(tmp_path / "run", twice) == {"The optimizer steps twice"}


def sharpness_aware(model, optimizer, rows, labels):
    """Two passes, of which the first one shows where the loss is largest nearby."""
    learn(model, optimizer, rows, labels)
    learn(model, optimizer, rows, labels)


def of_a_ready_gradient(model, optimizer, rows, labels):
    """Gradients that the training computes and copies itself, past the counter of PyTorch."""
    for _ in range(2):
        own = torch.autograd.grad(F.cross_entropy(model(rows), labels), [*model.parameters()])
        for parameter, gradient in zip(model.parameters(), own, strict=True):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.data.copy_(gradient)
        optimizer.step()


def without_gradients(model, optimizer, rows, labels):
    """A step that changes nothing, as before the first one of a schedule."""
    learn(model, optimizer, rows, labels)
    optimizer.zero_grad()
    optimizer.step()


def clipped_between(model, optimizer, rows, labels):
    """A second step of what the first one left: a smaller one."""
    learn(model, optimizer, rows, labels)
    for parameter in model.parameters():
        parameter.grad.mul_(0.1)
    optimizer.step()


def with_a_closure(model, optimizer, rows, labels):
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(rows), labels)
        loss.backward()
        return loss

    optimizer.step(closure)
    optimizer.step(closure)


@pytest.mark.parametrize(
    "step",
    [learn, sharpness_aware, of_a_ready_gradient, without_gradients, clipped_between, with_a_closure],
)
def test_steps_on_gradients_of_their_own_pass(tmp_path, step):
    assert found(tmp_path / "run", step) == set()


def test_a_second_step_now_and_then_passes(tmp_path):
    calls = iter([False, True, True, False, True, False, True, True])

    def sometimes(model, optimizer, rows, labels):
        learn(model, optimizer, rows, labels)
        if next(calls):
            optimizer.step()

    assert found(tmp_path / "run", sometimes) == set()
