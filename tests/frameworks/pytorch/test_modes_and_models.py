"""Steps and modes of the hook for PyTorch, with one model or several."""

from weakref import ref

import numpy as np
import torch
from torch import nn

import smdebug.pytorch as smd
from tests.frameworks.pytorch.training import (
    Net,
    batch,
    gradient,
    hook_in,
    trial_of,
)


def test_evaluation_counts_its_own_steps_and_saves_no_gradients(run):
    model, criterion = Net(), nn.CrossEntropyLoss()
    with hook_in(run) as hook:
        hook.register_module(model)
        hook.register_loss(criterion)
        for mode in (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.TRAIN):
            hook.set_mode(mode)
            inputs, labels = batch()
            with torch.set_grad_enabled(mode is smd.modes.TRAIN):
                loss = criterion(model(inputs), labels)
            if mode is smd.modes.TRAIN:
                loss.backward()
    trial = trial_of(run)
    assert trial.steps(smd.modes.TRAIN) == [0, 1]
    assert trial.steps(smd.modes.EVAL) == [0]
    assert not [n for n in trial.tensor_names(step=1) if n.startswith("gradient")]
    assert [n for n in trial.tensor_names(step=2) if n.startswith("gradient")]


def test_steps_begun_by_hand_are_not_begun_by_the_model_as_well(run):
    first, other = nn.Linear(2, 2), nn.Linear(2, 2)
    with hook_in(run) as hook:
        hook.register_module(first)
        hook.register_module(other)
        for _ in range(2):
            with hook.step(smd.modes.TRAIN):
                other(first(first(torch.ones(1, 2)))).sum().backward()
    trial = trial_of(run)
    assert trial.steps() == [0, 1]
    assert trial.tensor("gradient/Linear_weight").steps() == [0, 1]
    assert trial.tensor("Linear_output_1").steps() == [0, 1]
    assert trial.tensor("Linear-2_output_0").steps() == [0, 1]


def test_of_several_models_the_first_begins_the_steps(run):
    generator, critic = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1))
    with hook_in(run) as hook:
        hook.register_module(generator)
        hook.register_module(critic)
        for _ in range(3):
            critic(torch.ones(1, 2))
            critic(generator(torch.ones(1, 2)))
    trial = trial_of(run)
    assert trial.steps() == [0, 1, 2]
    assert trial.has_tensor("Sequential_0.weight")


def test_models_of_one_class_have_names_of_their_own(run):
    online, target = Net(), Net()
    with hook_in(run) as hook:
        hook.register_module(online)
        hook.register_module(target)
        with hook.step(smd.modes.TRAIN):
            inputs, _ = batch()
            (online(inputs) - target(inputs)).sum().backward()
    trial = trial_of(run)
    for name, model in {"Net": online, "Net-2": target}.items():
        weight = model.fc1.weight
        np.testing.assert_array_equal(trial.tensor(f"{name}_fc1.weight").value(0), weight.detach().numpy())
        np.testing.assert_array_equal(gradient(run, f"{name}_fc1.weight"), weight.grad.numpy())
        assert trial.tensor(f"{name}_output_0").steps() == [0]


def test_a_layer_that_is_replaced_is_seen_in_the_next_step(run):
    model = Net()
    with hook_in(run, include_regex="fc2_output") as hook:
        hook.register_module(model)
        for _ in range(2):
            inputs, _ = batch()
            given = model(inputs)
            model.fc2 = nn.Linear(model.fc2.in_features, 7)
    saved = trial_of(run).tensor("fc2_output_0")
    assert [saved.value(step).shape[1] for step in (0, 1)] == [3, 7]
    np.testing.assert_array_equal(saved.value(1), given.detach().numpy())


def test_a_model_is_not_kept_alive_and_another_one_takes_its_place(run):
    with hook_in(run) as hook:
        for number in range(2):
            model = Net()
            hook.register_module(model)
            model(batch()[0]).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.1).step()
            is_gone = ref(model)
            del model
            hook.flush()
            assert is_gone() is None, number
    trial = trial_of(run)
    assert trial.tensor("Net_fc1.weight").steps() == [0]
    assert trial.tensor("Net-2_fc1.weight").steps() == [1]
