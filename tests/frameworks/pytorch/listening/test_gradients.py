"""Gradients that the hook for PyTorch saves."""

import logging

import numpy as np
import pytest
import torch
from torch import nn

import smdebug.pytorch as smd
from tests.frameworks.pytorch.training import (
    Net,
    batch,
    forward_of,
    gradient,
    hook_in,
    since,
    train,
    trial_of,
    values,
)


def test_gradients_are_saved_as_they_were_clipped(run):
    held = []

    def clip(model, loss):
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        held.append(model.fc2.weight.grad.clone())

    train(run, look=clip)
    for step in range(4):
        np.testing.assert_array_equal(gradient(run, "Net_fc2.weight", step), held[step])


def test_accumulated_gradients_are_those_of_all_batches_so_far(run):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        for number in range(6):
            model(torch.full((1, 2), float(number + 1))).sum().backward()
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    sums = [gradient(run, "Linear_weight", step)[0, 0] for step in range(6)]
    assert sums == [1, 3, 6, 4, 9, 15]


@pytest.mark.parametrize("other_steps_later", [True, False])
def test_gradients_of_no_optimizer_are_those_before_the_model_is_reset(run, other_steps_later):
    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 4), nn.Linear(4, 1))
    first = torch.optim.SGD(model[0].parameters(), lr=0.1)
    other = torch.optim.SGD(model[1].parameters(), lr=0.1) if other_steps_later else None
    held = []
    with hook_in(run, save_all=False, include_collections=["gradients"]) as hook:
        hook.register_module(model)
        for _ in range(4):
            model(batch()[0]).sum().backward()
            first.step()
            if other is not None:
                with torch.no_grad():
                    model[1].weight.grad *= 2
                other.step()
            held.append([layer.weight.grad.numpy().copy() for layer in model])
            model.zero_grad()
    for step, expected in enumerate(held):
        for number, value in enumerate(expected):
            np.testing.assert_array_equal(gradient(run, f"Sequential_{number}.weight", step), value)


def test_gradients_that_the_optimizer_of_another_part_leaves_are_those_of_the_last_backward(run):
    model = nn.Sequential(nn.Linear(8, 40), nn.Linear(40, 1))
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in model]
    held = []
    with hook_in(run, save_all=False, include_collections=["gradients"]) as hook:
        hook.register_module(model)
        for step in range(20):
            loss = model(batch()[0]).sum()
            model.zero_grad()  # lets go of gradients whose place the next ones may take
            loss.backward()
            held.append([layer.weight.grad.numpy().copy() for layer in model])
            optimizers[step % 2].step()
    trial = trial_of(run)
    for number in range(2):
        saved = values(trial, f"gradient/Sequential_{number}.weight")
        assert list(saved) == list(range(20))
        for step, value in saved.items():
            np.testing.assert_array_equal(value, held[step][number])


def test_gradients_of_a_training_that_updates_by_hand_are_saved(run):
    model = nn.Linear(2, 1, bias=False)
    with hook_in(run) as hook:
        hook.register_module(model)
        for number in range(3):
            model(torch.full((1, 2), float(number))).sum().backward()
            with torch.no_grad():
                model.weight -= model.weight.grad
            model.weight.grad = None
    assert [gradient(run, "Linear_weight", step)[0, 1] for step in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("as_keyword", [False, True])
def test_gradients_that_come_into_being_in_a_closure_are_those_of_its_first_call(run, as_keyword):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    seen = []

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).square().sum()
        loss.backward()
        seen.append(model.weight.grad.clone())
        return loss

    with hook_in(run) as hook:
        hook.register_module(model)
        firsts = []
        for _ in range(2):
            with hook.step():
                firsts.append(len(seen))
                optimizer.step(closure=closure) if as_keyword else optimizer.step(closure)
    for step, first in enumerate(firsts):
        np.testing.assert_array_equal(gradient(run, "Linear_weight", step), seen[first])


@since("2.4", "a GradScaler and fused optimizers for the CPU")
@pytest.mark.parametrize("fused", [False, True])
def test_gradients_under_a_loss_scale_are_unscaled(run, fused):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with hook_in(run) as hook:
        hook.register_module(model)
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(torch.full((1, 2), 3.0)).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    for step in range(3):
        np.testing.assert_array_equal(gradient(run, "Linear_weight", step), [[3, 3]])
    assert trial_of(run).tensor("Linear_output_0").value(0).dtype.name == "bfloat16"


def test_a_step_without_a_backward_saves_no_old_gradients(run):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        with torch.no_grad():
            model(torch.ones(1, 2))
    assert trial_of(run).tensor("gradient/Linear_weight").steps() == [0]


def test_an_evaluation_after_which_gradients_are_set_to_zero_has_none(run):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            hook.set_mode(smd.modes.TRAIN)
            model(batch()[0]).sum().backward()
            optimizer.step()
            hook.set_mode(smd.modes.EVAL)
            with torch.no_grad():
                model(batch()[0])
    saved = trial_of(run).tensor("gradient/Net_fc1.weight")
    assert saved.steps(smd.modes.TRAIN) == [0, 1, 2]
    assert saved.steps(smd.modes.EVAL) == []


def test_frozen_and_unused_parameters_have_weights_but_no_gradients(run):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(2, 2)
            self.unused = nn.Linear(2, 2)
            self.used.bias.requires_grad_(False)

        def forward(self, x):
            return self.used(x)

    trial = forward_of(Half(), torch.ones(1, 2), run=run)
    assert trial.tensor_names(regex="gradient") == ["gradient/Half_used.weight"]
    assert {"Half_used.bias", "Half_unused.weight"} <= set(trial.tensor_names())


def test_parameters_that_come_into_being_in_the_first_forward_are_saved_from_then_on(run, caplog):
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    with caplog.at_level(logging.WARNING, "smdebug"), hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_module(model)
        for _ in range(3):
            loss = model(batch()[0]).sum()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        hook.logger.removeHandler(caplog.handler)
    trial = trial_of(run)
    assert trial.tensor("Sequential_0.weight").steps() == [1, 2]
    assert trial.tensor("gradient/Sequential_0.weight").steps() == [0, 1, 2]
    assert trial.tensor("0_output_0").steps() == [0, 1, 2]
    assert len([r for r in caplog.records if "lazy" in r.getMessage()]) == 1


def test_shared_parameters_and_modules_used_again_keep_one_name(run):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.again = self.first
            self.tied = nn.Linear(2, 2)
            self.tied.weight = self.first.weight

        def forward(self, x):
            return self.tied(self.again(self.first(x)))

    model = Tied()
    trial = forward_of(model, torch.ones(1, 2), run=run)
    assert [name for name in trial.tensor_names() if "weight" in name] == [
        "Tied_first.weight",
        "gradient/Tied_first.weight",
    ]
    np.testing.assert_array_equal(
        trial.tensor("gradient/Tied_first.weight").value(0), model.first.weight.grad
    )
    np.testing.assert_array_equal(
        trial.tensor("first_output_0").value(0), trial.tensor("first_input_1").value(0)
    )
    assert trial.has_tensor("first_output_1")
    assert not trial.has_tensor("first_output_2")


def test_sparse_gradients_are_written_out(run):
    model = nn.Sequential(nn.Embedding(4, 2, sparse=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        model(torch.tensor([1, 1, 3])).sum().backward()
        optimizer.step()
    np.testing.assert_array_equal(gradient(run, "Sequential_0.weight")[:, 0], [0, 2, 0, 1])
