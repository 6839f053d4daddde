"""Models that are compiled: saving never compiles them anew, and changes no result."""

import logging

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

import smdebug.pytorch as smd
from tests.frameworks.pytorch.training import Net, batch, hook_in, same, train

BACKEND = "aot_eager"  # graphs as any backend has them, without a C++ compiler


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch._dynamo.reset()
    counters.clear()


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def compiled(model):
    return torch.compile(model, backend=BACKEND)


def in_place(model):
    model.compile(backend=BACKEND)
    return model


EVERY_THIRD = smd.SaveConfig(save_interval=3)


@pytest.mark.parametrize("wrap", [compiled, in_place])
def test_a_compiled_model_is_compiled_as_often_with_a_hook_as_without(run, wrap):
    alone = train(steps=10, wrap=wrap)
    graphs = counters["stats"]["unique_graphs"]
    torch._dynamo.reset()
    counters.clear()
    watched = train(run, steps=10, wrap=wrap, save_config=EVERY_THIRD)
    assert counters["stats"]["unique_graphs"] == graphs
    assert same(watched, alone)
    trial = smd.create_trial(str(run))
    assert trial.steps() == [0, 3, 6, 9]
    assert {
        *("Net_fc1.weight", "gradient/Net_fc1.weight", "CrossEntropyLoss_output_0"),
    } <= set(trial.tensor_names(step=9))


def test_a_model_may_be_compiled_after_it_was_registered(run):
    torch.manual_seed(0)
    model = Net()
    with hook_in(run, save_config=EVERY_THIRD) as hook:
        hook.register_module(model)
        called = compiled(model)
        for _ in range(4):
            called(batch()[0]).sum().backward()
        graphs = counters["stats"]["unique_graphs"]
        for _ in range(6):
            called(batch()[0]).sum().backward()
        assert counters["stats"]["unique_graphs"] == graphs
    trial = smd.create_trial(str(run))
    assert trial.steps() == [0, 3, 6, 9]
    assert trial.has_tensor("gradient/Net_fc2.weight")


def test_layers_in_a_graph_are_not_seen_which_is_said_once(run, caplog):
    hook = hook_in(run)
    hook.logger.addHandler(caplog.handler)
    called = compiled(Net())
    hook.register_module(called)
    with caplog.at_level(logging.WARNING, "smdebug"):
        for _ in range(2):
            called(batch()[0])
    hook.close()
    hook.logger.removeHandler(caplog.handler)
    said = [r.getMessage() for r in caplog.records if "compiled graph" in r.getMessage()]
    assert len(said) == 1
    assert "fc1" in said[0]
    names = smd.create_trial(str(run)).tensor_names(regex="put_")
    assert names == ["Net_input_0", "Net_output_0"]


def test_steps_that_save_layers_can_run_uncompiled(run):
    train(run, steps=7, wrap=compiled, save_config=EVERY_THIRD, compiled_layers="eager")
    assert counters["stats"]["unique_graphs"] == 1
    trial = smd.create_trial(str(run))
    assert trial.tensor("relu_output_0").steps() == [0, 3, 6]


def test_a_layer_that_is_compiled_alone_hides_only_what_is_inside(run):
    model = nn.Sequential(Net(), nn.Linear(3, 3))
    model[0] = compiled(model[0])
    with hook_in(run) as hook:
        hook.register_module(model)
        model(batch()[0]).sum().backward()
    trial = smd.create_trial(str(run))
    assert trial.tensor_names(regex="output") == [
        *("0_output_0", "1_output_0", "Sequential_output_0")
    ]
    assert trial.has_tensor("gradient/Sequential_0.fc1.weight")
