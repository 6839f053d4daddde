"""Optimizers of which step() is never called, and those that rightly wait."""

import gc

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.pytorch.observing.optimizer_state import IdleOptimizers
from smdebug.runs import diagnose

STEPS = 200


def never(step):
    return False


def titles(place, is_stepped, make=torch.optim.Adam, reset=None):
    """Train with an optimizer of each layer, of which the first makes a step where it is told to."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    first, last = make(model[0].parameters(), lr=1e-3), torch.optim.Adam(model[2].parameters(), 1e-3)
    with smdebug.start(str(place)):
        for step in range(STEPS):
            given = torch.randn(16, 8)
            (reset or model.zero_grad)()
            last.zero_grad()
            F.cross_entropy(model(given), given[:, :4].argmax(1)).backward()
            last.step()
            if is_stepped(step):
                first.step()
    return [issue.title for issue in diagnose(str(place)).issues]


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.SGD])
def test_an_optimizer_that_makes_no_step_is_found(tmp_path, make):
    assert titles(tmp_path / "run", never, make) == ["An optimizer never makes a step"]


@pytest.mark.parametrize("first", [4, 180])
def test_one_that_makes_its_first_step_late_is_healthy(tmp_path, first):
    assert titles(tmp_path / "run", lambda step: step >= first) == []


def test_gradients_that_nobody_resets_wait_for_a_later_phase(tmp_path):
    assert titles(tmp_path / "run", never, reset=lambda: None) == []


def parameter(gradient):
    made = nn.Parameter(torch.ones(2, 2))
    made.grad = gradient
    return made


def facts_of(idle, waiting, stepped):
    """What is noted at the second of two steps, when optimizers are looked for."""
    noted = None
    for _ in range(2):
        idle.begin_step([("waiting", waiting)], stepped)
        idle.before_backward()
        noted = idle.facts(stepped)
    return None if noted is None else noted()


def test_what_has_no_gradient_or_only_zeros_does_not_wait():
    used = torch.optim.SGD([parameter(None)], 0.1)
    for gradient, found in ((torch.ones(2, 2), 1), (torch.zeros(2, 2), 0), (None, 0)):
        waiting = parameter(gradient)
        kept = torch.optim.SGD([waiting], 0.1)
        assert len(facts_of(IdleOptimizers(), waiting, [used]) or ()) == found
        assert facts_of(IdleOptimizers(), waiting, [used, kept]) is None


def test_an_optimizer_that_was_deleted_does_not_wait():
    used, waiting, idle = (
        torch.optim.SGD([parameter(None)], 0.1),
        parameter(torch.ones(2, 2)),
        IdleOptimizers(),
    )
    kept = torch.optim.SGD([waiting], 0.1)
    noted = facts_of(idle, waiting, [used])
    assert noted == [{"class": "SGD", "parameters": ["waiting"], "are_reset": False}]
    del kept
    gc.collect()
    assert idle.facts([used]) is None
