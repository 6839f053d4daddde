"""Zooming into a training of PyTorch: parameters, gradients and outputs whole, and the same results."""

import numpy as np
import torch
from torch import nn

import smdebug.pytorch as smd
from smdebug.runs.requests.zooming import request_zoom
from smdebug.saving.arrays.measurer import SMALL

STEPS = 40


def train(place, hook=None, request=None):
    """Train; at step 15 request the tensors. Gives the weights of the first layer at every step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    if hook is not None:
        hook.register_module(model)
    optimizer = torch.optim.Adam(model.parameters())
    before = []
    for step in range(STEPS):
        if request is not None and step == 15:
            hook.flush()
            request_zoom(place, request, steps=3)
        before.append(model[0].weight.detach().clone())
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.randint(0, 2, (16,))).backward()
        optimizer.step()
    return before


def watch(place):
    hook = smd.Hook(place, look_for_stop=0)
    hook.observes = True
    return hook


def test_named_tensors_are_saved_whole_at_consecutive_steps(run):
    with watch(run) as hook:
        before = train(
            str(run),
            hook,
            ["^Sequential_0.weight$", "^gradient/.*weight$", "^2_output", "^update/.*0.weight"],
        )
    trial = smd.create_trial(str(run))
    zoomed = [20, 21, 22]  # the first step after the request at which anything is due, and the next
    names = set(trial.tensor_names(collection="zoom"))
    assert {"Sequential_0.weight", "gradient/Sequential_0.weight"} <= names
    assert {"gradient/Sequential_2.weight", "2_output_0"} <= names
    for name in names:
        assert trial.tensor(name).steps() == zoomed, name
    for step in zoomed:
        saved = trial.tensor("Sequential_0.weight").value(step)
        np.testing.assert_array_equal(saved, before[step].numpy())
        gradient = trial.tensor("gradient/Sequential_0.weight").value(step)
        rms = trial.statistics(step, kind="gradients").column("rms")[0]
        np.testing.assert_allclose(np.sqrt(np.mean(gradient**2)), rms, rtol=1e-5)
        update = trial.tensor("update/Sequential_0.weight").value(step)
        np.testing.assert_array_equal(update, (before[step + 1] - before[step]).numpy())


def test_the_update_of_a_large_parameter_is_saved_whole(run):
    torch.manual_seed(0)
    model = nn.Linear(128, 128)
    assert model.weight.numel() > SMALL
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    changes = []
    with watch(run) as hook:
        hook.register_module(model)
        for step in range(30):
            if step == 15:
                hook.flush()
                request_zoom(str(run), ["^update/"], steps=3)
            before = model.weight.detach().clone()
            optimizer.zero_grad()
            model(torch.randn(4, 128)).square().mean().backward()
            optimizer.step()
            changes.append((model.weight.detach() - before).numpy())
    trial = smd.create_trial(str(run))
    (name,) = [name for name in trial.tensor_names(collection="zoom") if "weight" in name]
    for step in (20, 21, 22):
        np.testing.assert_array_equal(trial.tensor(name).value(step), changes[step])
        statistics = trial.statistics(step, kind="updates")
        rms = statistics.column("rms")[statistics.names.index(name)]
        np.testing.assert_allclose(np.sqrt(np.mean(changes[step] ** 2)), rms, rtol=1e-5)


def test_a_training_that_is_zoomed_into_is_the_same_to_the_last_bit(run):
    alone = train(None)
    with watch(run) as hook:
        seen = train(str(run), hook, ["."])
    assert all(torch.equal(a, b) for a, b in zip(alone, seen, strict=True))
