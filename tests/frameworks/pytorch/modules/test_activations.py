"""Activations are found by their class, as their names in `nn.Sequential` are numbers."""

import pytest
import torch
from torch import nn

import smdebug.pytorch as smd
from smdebug.trials import create_trial
from smdebug_rules.layers.dead_relu import DeadRelu
from smdebug_rules.layers.saturated_activation import SaturatedActivation
from tests.frameworks.pytorch.training import EVERY_STEP

TRAIN = smd.modes.TRAIN


class Named(nn.Module):
    """A model whose activations have names of their own."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.Tanh()
        self.gate = nn.Sigmoid()
        self.leaky = nn.LeakyReLU()

    def forward(self, x):
        return self.gate(self.leaky(self.act(self.fc(x))))


def sequential():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU6(), nn.Tanh())


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "run")


def trained(place, model=None, late=None, scale=1.0, touch=lambda hook: None, **options):
    hook = smd.Hook(place, save_config=EVERY_STEP, **options)
    touch(hook)
    model = sequential() if model is None else model
    hook.register_module(model)
    hook.set_mode(TRAIN)
    for _ in range(2):
        model(scale * torch.ones(2, 4))
        if late is not None and not hook.has_module(late):
            hook.register_module(late)
        if late is not None:
            late(torch.ones(2, 4))
    hook.close()
    return create_trial(place)


def test_a_collection_named_after_an_activation_has_its_layers(place):
    trial = trained(place, include_collections=["relu_output", "tanh_input"])
    assert trial.tensor_names() == ["1_output_0", "3_output_0", "4_input_0"]
    assert trial.tensor_names(collection="relu_output") == ["1_output_0", "3_output_0"]
    assert trial.tensors(collection="tanh_input") == ["4_input_0"]
    assert trial.tensor("1_output_0").steps() == [0, 1]


def test_layers_with_names_of_their_own_are_found_too_but_no_leaky_relu(place):
    trial = trained(place, Named(), include_regex=".*relu_output|.*tanh_output|.*sigmoid_input")
    assert trial.tensor_names() == ["act_output_0", "gate_input_0"]
    assert trial.tensor_names(collection="sigmoid_input") == ["gate_input_0"]


@pytest.mark.parametrize("pattern", [".*relu_output", ".*relu_output|.*ReLU_output", "ReLU_out"])
def test_a_pattern_for_activations_selects_them_in_any_collection(place, pattern):
    touch = lambda hook: hook.get_collection("mine").include(pattern)  # noqa: E731
    trial = trained(place, touch=touch, include_collections=["mine"])
    assert trial.tensor_names(collection="mine") == ["1_output_0", "3_output_0"]


def test_a_narrower_pattern_keeps_its_meaning(place):
    touch = lambda hook: hook.get_collection("relu_output").include("^3_output")  # noqa: E731
    trial = trained(place, touch=touch, include_collections=["relu_output"])
    assert trial.tensor_names() == ["3_output_0"]


def test_readers_find_activations_that_something_else_has_saved(place):
    trial = trained(place, save_all=True)
    assert trial.tensor_names(collection="relu_input") == ["1_input_0", "3_input_0"]
    assert trial.tensor_names(collection="tanh_output") == ["4_output_0"]


def test_a_model_registered_later_is_part_of_them(place):
    late = nn.Sequential(nn.Tanh(), nn.Dropout(), nn.ReLU())
    trial = trained(place, late=late, include_collections=["relu_output"])
    assert "Sequential-2_2_output_0" in trial.tensor_names(collection="relu_output")


def test_the_default_plan_is_still_followed(place):
    hook = smd.Hook(place)
    model = sequential()
    hook.register_module(model)
    hook.set_mode(TRAIN)
    model(torch.ones(2, 4))
    hook.close()
    assert create_trial(place).observations.exist


def test_dead_relu_sees_inside_sequential(place):
    model = sequential()
    nn.init.constant_(model[0].bias, -100.0)
    nn.init.constant_(model[2].bias, 1.0)
    trial = trained(place, model, include_collections=["relu_output"])
    rule = DeadRelu(trial)
    assert rule.invoke_at_step(0)
    assert [finding.tensor for finding in rule.findings] == ["1_output_0"]


def test_saturated_activation_sees_inside_sequential(place):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Sigmoid())
    nn.init.constant_(model[0].bias, 100.0)
    trial = trained(place, model, include_collections=["tanh_input", "sigmoid_input"])
    rule = SaturatedActivation(trial)
    assert rule.invoke_at_step(0)
    assert [finding.tensor for finding in rule.findings] == ["1_input_0"]
