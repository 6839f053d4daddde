"""Targets that the weights compute that learn them, and other errors of which both sides have a gradient."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.pytorch.graphs.own_targets import own_target
from smdebug.trials import create_trial

ROWS = 16
REWARDS, GOES_ON = torch.arange(ROWS) / 8.0, (torch.arange(ROWS) % 4 > 0).float()


def made(outputs=2):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, outputs))


def found(model, loss):
    return own_target(loss, {id(parameter): name for name, parameter in model.named_parameters()})


def taken(model, places):
    return model(places).gather(1, torch.zeros(ROWS, 1, dtype=torch.long)).squeeze(1)


def best(model, following, discount=0.98):
    return REWARDS + discount * GOES_ON * model(following).max(1).values


def of_values(model, other, error):
    return error(taken(model, torch.randn(ROWS, 4)), best(other, torch.randn(ROWS, 4)))


def squares(prediction, target):
    return (target - prediction).pow(2).mean()


@pytest.mark.parametrize("error", [F.mse_loss, F.smooth_l1_loss, F.huber_loss, squares])
def test_values_of_the_next_place_with_a_gradient_are_found(error):
    model = made()
    target = found(model, 0.5 * of_values(model, model, error) + 0.1)
    assert target.discount == pytest.approx(0.98)
    assert target.parameter in dict(model.named_parameters())


def test_it_is_found_in_an_error_of_single_values_beside_the_loss_of_an_actor():
    critic, actor = made(1), made()
    values, following = critic(torch.randn(ROWS, 4)).squeeze(1), critic(torch.randn(ROWS, 4)).squeeze(1)
    advantage = REWARDS + 0.9 * following * GOES_ON - values
    chosen = actor(torch.randn(ROWS, 4)).log_softmax(1)[:, 0]
    loss = -(chosen * advantage.detach()).mean() + 0.5 * (advantage * advantage).mean()
    assert found(critic, loss).discount == pytest.approx(0.9)


def test_both_halves_of_one_batch_are_found():
    critic = made(1)
    values, following = critic(torch.randn(2 * ROWS, 4)).squeeze(1).chunk(2)
    assert found(critic, F.mse_loss(values, REWARDS + 0.9 * following))


def other_sides():
    model, target = made(), copy.deepcopy(made())
    critic, inputs = made(1), torch.randn(ROWS, 4, requires_grad=True)
    value = critic(inputs).squeeze(1)
    slope = torch.autograd.grad(value.sum(), inputs, create_graph=True)[0][:, 0]
    views = [model(torch.randn(ROWS, 4)) for _ in range(2)]
    with torch.no_grad():
        kept = best(model, torch.randn(ROWS, 4))
    yield "no gradient", model, F.mse_loss(taken(model, torch.randn(ROWS, 4)), kept)
    yield "another network", model, of_values(model, target, F.mse_loss)
    yield "two views", model, F.mse_loss(*views)
    yield "two views of which one is smaller", model, F.mse_loss(views[0], 0.9 * views[1])
    yield "a residual", model, F.mse_loss(views[0], views[1] + REWARDS[:, None])
    yield "a mean of both", model, F.mse_loss(views[0], 0.9 * views[1] + 0.1 * views[0])
    yield "a small step", critic, F.mse_loss(critic(torch.randn(ROWS, 4)).squeeze(1), REWARDS + 0.1 * value)
    yield "a larger one", critic, F.mse_loss(critic(torch.randn(ROWS, 4)).squeeze(1), REWARDS + 1.5 * value)
    yield (
        "a difference",
        critic,
        F.mse_loss(critic(torch.randn(ROWS, 4)).squeeze(1), REWARDS - 0.9 * value.exp()),
    )
    yield "an equation", critic, (slope - (REWARDS + 0.9 * value)).pow(2).mean()


@pytest.mark.parametrize(("model", "loss"), [pytest.param(*rest, id=name) for name, *rest in other_sides()])
def test_other_errors_pass(model, loss):
    assert found(model, loss) is None


@pytest.mark.parametrize("detaches", [False, True])
def test_it_is_a_fact_of_each_saved_step(tmp_path, detaches):
    model = made()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with smdebug.start(tmp_path / "run"):
        for _ in range(4):
            wanted = best(model, torch.randn(ROWS, 4))
            loss = F.mse_loss(taken(model, torch.randn(ROWS, 4)), wanted.detach() if detaches else wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    trial = create_trial(tmp_path / "run")
    facts = [trial.facts(step).get("own_target") for step in trial.steps()]
    assert all(fact is None for fact in facts) if detaches else all(fact["discount"] < 1 for fact in facts)
