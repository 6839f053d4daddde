"""The layers inside compiled models show their tensors, and change neither graphs nor results."""

import copy
import io
import logging

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

import smdebug.pytorch as smd
from tests.frameworks.pytorch.training import batch, hook_in, same, since, train

BACKEND = "aot_eager"  # graphs as any backend has them, without a C++ compiler
pytestmark = since("2.7", "torch.compiler.is_exporting")


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch._dynamo.reset()
    counters.clear()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return x + torch.tanh(self.linear(self.norm(x)))


class Blocks(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(8, 3)
        self.checkpointed = checkpointed

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


def whole(model, **options):
    return torch.compile(model, backend=BACKEND, fullgraph=True, **options)


def in_place(model):
    model.compile(backend=BACKEND, fullgraph=True)
    return model


def by_blocks(model):
    for block in model.blocks:
        block.compile(backend=BACKEND, fullgraph=True)
    return model


INNER = [f"blocks.{number}{layer}_output_0" for number in (0, 1) for layer in ("", ".linear", ".norm")]


def put(trial, step):
    """The inputs and outputs of layers, as saved at that step."""
    names = trial.tensor_names(step=step, regex="_(in|out)put_")
    return {name: trial.tensor(name).value(step) for name in names}


@pytest.mark.parametrize("wrap", [whole, in_place, by_blocks])
def test_inner_layers_show_what_they_do_uncompiled_with_the_same_graphs_and_bits(run, wrap):
    alone = train(steps=5, make=Blocks, wrap=wrap)
    graphs = counters["stats"]["unique_graphs"]
    torch._dynamo.reset()
    counters.clear()
    watched = train(run / "compiled", steps=5, make=Blocks, wrap=wrap)
    assert counters["stats"]["unique_graphs"] == graphs == 1
    assert not counters["graph_break"]
    assert same(watched, alone)

    train(run / "eager", steps=5, make=Blocks)
    shown, expected = (put(smd.create_trial(str(run / name)), 4) for name in ("compiled", "eager"))
    assert set(INNER) <= set(shown)
    assert set(shown) == set(expected)
    for name in expected:
        np.testing.assert_allclose(shown[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert not np.array_equal(shown["blocks.0_output_0"], shown["blocks.1_output_0"])


def test_only_steps_that_are_saved_record_what_is_shown(run):
    train(run, steps=7, make=Blocks, wrap=whole, save_config=smd.SaveConfig(save_interval=3))
    assert smd.create_trial(str(run)).tensor("blocks.1.norm_output_0").steps() == [0, 3, 6]


def test_a_step_that_is_not_the_first_may_be_the_first_to_be_saved(run):
    train(run, steps=4, make=Blocks, wrap=whole, save_config=smd.SaveConfig(start_step=2, save_interval=1))
    assert smd.create_trial(str(run)).tensor("head_output_0").steps() == [2, 3]


def test_what_is_computed_again_for_the_backward_pass_is_recorded_once(run):
    train(run, steps=2, make=lambda: Blocks(checkpointed=True), wrap=whole)
    names = smd.create_trial(str(run)).tensor_names(regex="_output_")
    assert set(INNER) <= set(names)
    assert [name for name in names if not name.endswith("_output_0")] == []


def test_a_batch_of_another_size_compiles_nothing_more(run):
    def passes(model, called):
        for size in (4, 6, 9):
            called(torch.ones(size, 8)).sum().backward()
        return counters["stats"]["unique_graphs"]

    model = Blocks()
    alone = passes(model, whole(model, dynamic=True))
    torch._dynamo.reset()
    counters.clear()
    with hook_in(run) as hook:
        called = whole(Blocks(), dynamic=True)
        hook.register_module(called)
        assert passes(model, called) == alone
    shapes = smd.create_trial(str(run)).tensor("blocks.0.norm_output_0")
    assert [shapes.value(step).shape for step in shapes.steps()] == [(4, 8), (6, 8), (9, 8)]


class Several(nn.Module):
    def forward(self, x, scale=None):
        return {"sums": x.sum(1), "parts": (x * scale, [x + 1])}


class OfSeveral(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 3)
        self.several = Several()

    def forward(self, x):
        found = self.several(self.linear(x), scale=torch.tensor(2.0))
        return found["parts"][0] + found["parts"][1][0] + found["sums"][:, None]


def test_all_tensors_of_a_layer_are_numbered_as_uncompiled(run):
    train(run / "compiled", steps=1, make=OfSeveral, wrap=whole)
    train(run / "eager", steps=1, make=OfSeveral)
    shown, expected = (put(smd.create_trial(str(run / name)), 0) for name in ("compiled", "eager"))
    assert {"several_output_2", "several_input_1"} <= set(shown)
    assert set(shown) == set(expected)
    for name in expected:
        np.testing.assert_allclose(shown[name], expected[name], rtol=1e-5, err_msg=name)


def test_a_graph_that_was_compiled_before_shows_nothing_which_is_said_once(run, caplog):
    called = whole(Blocks())
    called(batch()[0]).sum().backward()
    hook = hook_in(run)
    hook.logger.addHandler(caplog.handler)
    hook.register_module(called)
    with caplog.at_level(logging.WARNING, "smdebug"):
        for _ in range(3):
            called(batch()[0]).sum().backward()
    hook.close()
    hook.logger.removeHandler(caplog.handler)
    messages = [r.getMessage() for r in caplog.records if "are not saved" in r.getMessage()]
    assert len(messages) == 1
    assert "made before the model was registered" in messages[0]
    assert smd.create_trial(str(run)).tensor_names(regex="_output_") == ["Blocks_output_0"]


def test_a_model_that_is_compiled_after_it_was_registered_shows_its_layers(run):
    model = Blocks()
    with hook_in(run) as hook:
        hook.register_module(model)
        called = torch.compile(model, backend=BACKEND)
        for _ in range(2):
            called(batch()[0]).sum().backward()
    assert smd.create_trial(str(run)).tensor("blocks.1.norm_output_0").steps() == [0, 1]


def test_a_copy_shows_nothing_and_a_saved_model_needs_no_library(run):
    model = Blocks()
    with hook_in(run) as hook:
        called = whole(model)
        hook.register_module(called)
        called(batch()[0]).sum().backward()
        twin = copy.deepcopy(model)
        content = io.BytesIO()
        torch.save(model, content)
        assert b"smdebug.pytorch" not in content.getvalue()
        before = counters["stats"]["calls_captured"]
        whole(twin)(batch()[0]).sum().backward()
        of_twin = counters["stats"]["calls_captured"] - before
        assert set(model.state_dict()) == set(Blocks().state_dict())
    torch._dynamo.reset()
    counters.clear()
    whole(Blocks())(batch()[0]).sum().backward()
    assert of_twin == counters["stats"]["calls_captured"]
    assert smd.create_trial(str(run)).steps() == [0]


def test_a_copy_that_is_watched_is_not_mistaken_for_its_original(run):
    model = Blocks()
    with hook_in(run / "a") as hook:
        called = whole(model)
        hook.register_module(called)
        called(batch()[0]).sum().backward()
        twin = copy.deepcopy(model)
        nn.init.zeros_(twin.head.weight)
        with hook_in(run / "b") as other:
            called_twin = whole(twin)
            other.register_module(called_twin)
            called_twin(batch()[0]).sum().backward()
    first, second = (smd.create_trial(str(run / name)).tensor("head_output_0") for name in "ab")
    assert first.steps() == second.steps() == [0]
    assert np.ptp(second.value(0), axis=0).max() == 0 < np.ptp(first.value(0), axis=0).max()


def test_a_transform_within_a_graph_stays_possible(run):
    model = Blocks()
    with hook_in(run) as hook:

        @torch.compile(backend=BACKEND)
        def each(rows):
            return torch.vmap(model.head)(rows)

        called = whole(model)
        hook.register_module(called)
        called(batch()[0]).sum().backward()
        assert torch.equal(each(torch.ones(3, 2, 8))[0], model.head(torch.ones(2, 8)))


def test_an_error_while_recording_ends_no_training(run, monkeypatch):
    hook = hook_in(run)
    hook.logger.propagate = False
    monkeypatch.setattr(type(hook), "record_outputs", lambda *_: 1 / 0)
    called = whole(Blocks())
    hook.register_module(called)
    called(batch()[0]).sum().backward()
    hook.close()
    assert smd.create_trial(str(run)).has_tensor("gradient/Blocks_head.weight")


def test_the_default_plan_measures_inner_layers_of_a_model_of_inductor_with_the_same_bits(run):
    def trained(out_dir):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Blocks()
        called = torch.compile(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hook = None if out_dir is None else smd.Hook(str(out_dir))
        if hook is not None:
            hook.register_module(called)
        for _ in range(4):
            inputs, labels = batch()
            optimizer.zero_grad()
            nn.functional.cross_entropy(called(inputs), labels).backward()
            optimizer.step()
        if hook is not None:
            hook.close()
        return model

    assert same(trained(run), trained(None))
    measured = smd.create_trial(str(run)).measured_tensors()
    assert set(INNER) <= set(measured)
