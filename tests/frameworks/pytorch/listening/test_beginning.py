"""A model that is compiled after it was registered, or called: steps begin as without, and nothing breaks."""

import logging

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.nn import functional as F  # noqa: N812

import smdebug
import smdebug.pytorch as smd
from smdebug import modes
from smdebug.logger import get_logger
from tests.frameworks.pytorch.training import Net, batch, hook_in, same, since

INPUTS, LABELS = batch()
STEPS = 13
IN_GRAPHS = since("2.7", "torch.compiler.is_exporting")


@pytest.fixture(autouse=True)
def _nothing_compiled():
    yield
    torch._dynamo.reset()
    for kind in ("frames", "stats", "graph_break"):
        counters[kind].clear()


@pytest.fixture
def logged():
    handler = logging.Handler(logging.WARNING)
    messages = []
    handler.emit = lambda record: messages.append(record.getMessage())
    get_logger().addHandler(handler)
    yield messages
    get_logger().removeHandler(handler)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return x + torch.tanh(self.linear(self.norm(x)))


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.block = Block()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(F.dropout(self.block(self.first(x)), 0.1, self.training))


def whole(model, **options):
    called = torch.compile(model, **options)
    return lambda: F.cross_entropy(called(INPUTS), LABELS)


def in_place(model, **options):
    model.compile(**options)
    return lambda: F.cross_entropy(model(INPUTS), LABELS)


def within_a_function(model, **options):
    called = torch.compile(lambda inputs: model(inputs), **options)
    return lambda: F.cross_entropy(called(INPUTS), LABELS)


def with_its_loss(model, **options):
    return torch.compile(lambda: F.cross_entropy(model(INPUTS), LABELS), **options)


def block_in_place(model, **options):
    model.block.compile(**options)
    return lambda: F.cross_entropy(model(INPUTS), LABELS)


def block_replaced(model, **options):
    model.block = torch.compile(model.block, **options)
    return lambda: F.cross_entropy(model(INPUTS), LABELS)


EVERY_WAY = [whole, in_place, within_a_function, with_its_loss, block_in_place, block_replaced]
LAYERS = ["Blocks_output_0", "first_output_0", "block_output_0", "block.linear_output_0"]


def trained(compiled, late, backend, *, fullgraph=True, watch=lambda model: None):
    """Train a model that is compiled at step `late`; return it, and the numbers of graphs and breaks."""
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    model = Blocks()
    watch(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss = lambda: F.cross_entropy(model(INPUTS), LABELS)  # noqa: E731
    for step in range(STEPS):
        if step == late:
            loss = compiled(model, backend=backend, fullgraph=fullgraph)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        loss()
    return model, (counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))


def started(place, *settings, **named):
    with smdebug.start(place):
        return trained(*settings, **named)


def registered(place, *settings, **named):
    with hook_in(place, save_config=smd.SaveConfig(save_interval=3)) as hook:
        return trained(*settings, **named, watch=hook.register_module)


@IN_GRAPHS
@pytest.mark.parametrize("compiled", EVERY_WAY)
def test_a_model_that_is_compiled_after_its_first_calls_is_watched_on(compiled, tmp_path, logged):
    place = str(tmp_path / "run")
    alone, graphs = trained(compiled, 2, "aot_eager")
    watched, watched_graphs = started(place, compiled, 2, "aot_eager")
    assert watched_graphs == graphs == (2, 0)
    assert same(watched, alone)
    trial = smd.create_trial(place)
    assert len(trial.series("loss")) >= STEPS
    assert set(LAYERS) <= set(trial.statistics(10, modes.TRAIN).of("outputs").names)
    assert [message for message in logged if "graph" in message] == []


@IN_GRAPHS
@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("compiled", EVERY_WAY)
def test_a_model_that_is_compiled_after_it_was_registered_stays_in_one_piece(compiled, late, tmp_path):
    alone, graphs = trained(compiled, late, "aot_eager")
    watched, watched_graphs = registered(tmp_path / "run", compiled, late, "aot_eager")
    assert watched_graphs == graphs == (2, 0)
    assert same(watched, alone)
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 3, 6, 9, 12]
    for name in (*LAYERS, "gradient/Blocks_block.linear.weight"):
        assert trial.tensor(name).steps() == [0, 3, 6, 9, 12], name


@IN_GRAPHS
@pytest.mark.parametrize("compiled", [whole, within_a_function])
@pytest.mark.parametrize(("backend", "fullgraph"), [("eager", True), ("eager", False), ("inductor", True)])
def test_every_backend_sees_the_same_with_the_same_bits(compiled, backend, fullgraph, tmp_path):
    settings = {"fullgraph": fullgraph}
    alone, graphs = trained(compiled, 1, backend, **settings)
    watched, watched_graphs = registered(tmp_path / "run", compiled, 1, backend, **settings)
    assert watched_graphs == graphs
    assert same(watched, alone)
    registered(tmp_path / "uncompiled", whole, STEPS, backend)
    trials = [smd.create_trial(str(tmp_path / name)) for name in ("run", "uncompiled")]
    for name in LAYERS:
        found, expected = (trial.tensor(name).value(9) for trial in trials)
        assert found.shape == expected.shape
        if backend == "eager":  # Inductor draws on its own what dropout leaves out
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=name)


@IN_GRAPHS
def test_the_order_of_a_compiler_shows_no_layer_before_the_step_has_begun(tmp_path):
    model = Blocks()
    with hook_in(tmp_path / "run") as hook:
        hook.register_module(model)
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return graph.forward

        torch.compile(lambda inputs: model(inputs), backend=backend, fullgraph=True)(INPUTS)
    (graph,) = graphs
    called = [node for node in graph.graph.nodes if node.op == "call_function"]
    begin, *shows = (node for node in called if "smdebug" in str(node.target))
    assert begin is called[0]
    assert len(shows) == 12  # the inputs and the outputs of each
    assert all(show.args[3] is begin.args[0] for show in shows)


def test_of_the_direct_calls_of_a_model_that_is_compiled_too_each_begins_a_step(tmp_path):
    model = Net()
    with hook_in(tmp_path / "run") as hook:
        hook.register_module(model)
        called = torch.compile(model, backend="eager")
        for each in (model, called, called, model, called):
            each(INPUTS).sum().backward()
        assert hook.step == 4
    assert smd.create_trial(str(tmp_path / "run")).tensor("Net_output_0").steps() == [0, 1, 2, 3, 4]


@IN_GRAPHS
def test_a_step_in_a_graph_is_of_its_mode(tmp_path):
    with smdebug.start(str(tmp_path / "run")):
        trained(within_a_function, 3, "aot_eager")
    trial = smd.create_trial(str(tmp_path / "run"))
    assert len(trial.steps(modes.EVAL)) == 1
    assert trial.steps(modes.TRAIN)[-1] >= STEPS - 3


@IN_GRAPHS
def test_a_graph_goes_on_after_its_hook_was_closed(tmp_path):
    model = Blocks()
    with hook_in(tmp_path / "run") as hook:
        hook.register_module(model)
        called = torch.compile(lambda inputs: model(inputs), backend="aot_eager", fullgraph=True)
        called(INPUTS)
    graphs = counters["stats"]["unique_graphs"]
    assert called(INPUTS).shape == (5, 3)
    assert hook.step == 0
    assert counters["stats"]["unique_graphs"] <= graphs + 1
    with hook_in(tmp_path / "next") as other:
        other.register_module(model)
        torch._dynamo.reset()
        called(INPUTS)
        called(INPUTS)
        assert other.step == 1


@IN_GRAPHS
def test_a_stop_that_was_requested_ends_a_training_in_a_graph(tmp_path):
    model = Blocks()
    with hook_in(tmp_path / "run") as hook:
        hook.register_module(model)
        called = torch.compile(lambda inputs: model(inputs), backend="aot_eager", fullgraph=True)
        called(INPUTS)
        hook.recorder._check_for_stop = _refuse
        with pytest.raises(smdebug.exceptions.TrainingStopped):
            called(INPUTS)


def _refuse():
    raise smdebug.exceptions.TrainingStopped("a rule has asked for it", 1)


@pytest.mark.skipif(hasattr(torch.compiler, "is_exporting"), reason="before PyTorch 2.7")
@pytest.mark.parametrize("compiled", [whole, in_place])
def test_before_2_7_a_model_compiled_in_one_piece_raises_nothing_and_begins_steps(compiled, tmp_path):
    model = Block()
    with hook_in(tmp_path / "run") as hook:
        hook.register_module(model)
        loss = compiled(model, backend="aot_eager", fullgraph=True)
        for _ in range(3):
            loss().backward()
        assert hook.step == 2


@pytest.mark.skipif(hasattr(torch.compiler, "is_exporting"), reason="before PyTorch 2.7")
def test_before_2_7_a_function_compiled_in_one_piece_raises_nothing_which_is_said(tmp_path, logged):
    model = Block()
    with hook_in(tmp_path / "run") as hook:
        hook.register_module(model)
        called = torch.compile(lambda inputs: model(inputs), backend="aot_eager", fullgraph=True)
        for _ in range(3):
            with hook.step(modes.TRAIN):
                called(INPUTS).sum().backward()
    assert [message for message in logged if "compiled in one piece" in message]
    assert smd.create_trial(str(tmp_path / "run")).tensor("Block_linear.weight").steps() == [0, 1, 2]
