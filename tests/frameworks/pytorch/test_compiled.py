"""Compiled models: saving never recompiles them, and changes no result."""

import copy
import logging

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

import smdebug.pytorch as smd
from tests.frameworks.pytorch.training import Net, batch, hook_in, same, since, train

BACKEND = "aot_eager"  # graphs as any backend has them, without a C++ compiler


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch._dynamo.reset()
    counters.clear()


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
        "Net_fc1.weight",
        "gradient/Net_fc1.weight",
        "CrossEntropyLoss_output_0",
    } <= set(trial.tensor_names(step=9))


def test_a_model_that_is_compiled_in_place_stays_in_one_piece_and_is_left_as_it_was(run):
    model = Net()
    model.compile(backend=BACKEND, fullgraph=True)
    called = model._compiled_call_impl
    with hook_in(run) as hook:
        hook.register_module(model)
        for _ in range(3):
            model(batch()[0]).sum().backward()
        assert copy.deepcopy(model)._compiled_call_impl is None
    assert model._compiled_call_impl is called
    assert counters["stats"]["unique_graphs"] == 1
    assert smd.create_trial(str(run)).tensor("gradient/Net_fc1.weight").steps() == [0, 1, 2]


def in_one_piece(hook, optimizer, model, criterion):
    """A step that is compiled as a whole: forward, backward, and update."""

    @torch.compile(backend=BACKEND)
    def step(inputs, labels):
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()

    return step


def with_compiled_update(hook, optimizer, model, criterion):
    update = torch.compile(lambda: optimizer.step(), backend=BACKEND)

    def step(inputs, labels):
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        update()

    return step


WHOLE_STEPS = since("2.2", "2.1 compiles a module again for each new hook")


@pytest.mark.parametrize(
    "compiled_step", [pytest.param(in_one_piece, marks=WHOLE_STEPS), with_compiled_update]
)
def test_of_a_compiled_step_saving_is_not_a_part(run, compiled_step):
    def train_compiled(hook, steps):
        torch._dynamo.reset()
        counters.clear()
        torch.manual_seed(0)
        model, criterion = Net(), nn.CrossEntropyLoss()
        if hook is not None:
            hook.register_module(model)
            hook.register_loss(criterion)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = compiled_step(hook, optimizer, model, criterion)
        graphs = []
        for _ in range(steps):
            step(*batch())
            graphs.append(counters["stats"]["unique_graphs"])
        return model, graphs

    alone, _ = train_compiled(None, 10)
    with hook_in(run, save_config=EVERY_THIRD) as hook:
        watched, graphs = train_compiled(hook, 10)
    assert same(watched, alone)
    assert graphs[-1] == graphs[3]  # the first step that saves may be compiled apart, no later one
    trial = smd.create_trial(str(run))
    for name in ("Net_fc1.weight", "gradient/Net_fc1.weight"):
        assert trial.tensor(name).steps() == [0, 3, 6, 9]


@since("2.5", "export(strict=)")
@pytest.mark.parametrize("strict", [True, False])
def test_a_registered_model_is_exported_as_if_it_were_not(run, strict, caplog):
    model = Net().eval()
    inputs, _ = batch()
    with hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_module(model)
        expected = model(inputs)
        exported = torch.export.export(model, (inputs,), strict=strict)
        traced = torch.jit.trace(model, inputs, check_trace=False)
        hook.logger.removeHandler(caplog.handler)
        assert hook.step == 0
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
    torch.testing.assert_close(exported.module()(inputs), expected)
    torch.testing.assert_close(traced(inputs), expected)
    assert smd.create_trial(str(run)).steps() == [0]


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


def test_layers_in_a_graph_are_not_seen_which_is_reported_once(run, caplog):
    hook = hook_in(run, compiled_layers="skip")
    hook.logger.addHandler(caplog.handler)
    called = compiled(Net())
    hook.register_module(called)
    with caplog.at_level(logging.WARNING, "smdebug"):
        for _ in range(2):
            called(batch()[0])
    hook.close()
    hook.logger.removeHandler(caplog.handler)
    messages = [r.getMessage() for r in caplog.records if "compiled graph" in r.getMessage()]
    assert len(messages) == 1
    assert "fc1" in messages[0]
    names = smd.create_trial(str(run)).tensor_names(regex="put_")
    assert names == ["Net_input_0", "Net_output_0"]


@since("2.6", "torch.compiler.set_stance")
def test_steps_that_save_layers_can_run_uncompiled(run):
    train(run, steps=7, wrap=compiled, save_config=EVERY_THIRD, compiled_layers="eager")
    assert counters["stats"]["unique_graphs"] == 1
    trial = smd.create_trial(str(run))
    assert trial.tensor("relu_output_0").steps() == [0, 3, 6]


@pytest.mark.skipif(hasattr(torch.compiler, "set_stance"), reason="before PyTorch 2.6")
def test_where_no_step_can_run_uncompiled_that_is_reported_and_the_rest_is_saved(run, caplog):
    train(run, steps=4, wrap=compiled, save_config=EVERY_THIRD, compiled_layers="eager")
    assert "From PyTorch 2.6 on they can be" in caplog.text
    trial = smd.create_trial(str(run))
    assert trial.tensor("Net_fc1.weight").steps() == [0, 3]
    assert not trial.has_tensor("relu_output_0")


def test_a_layer_that_is_compiled_alone_hides_only_what_is_inside(run):
    model = nn.Sequential(Net(), nn.Linear(3, 3))
    model[0] = compiled(model[0])
    with hook_in(run, compiled_layers="skip") as hook:
        hook.register_module(model)
        model(batch()[0]).sum().backward()
    trial = smd.create_trial(str(run))
    assert trial.tensor_names(regex="output") == ["0_output_0", "1_output_0", "Sequential_output_0"]
    assert trial.has_tensor("gradient/Sequential_0.fc1.weight")
