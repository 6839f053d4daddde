"""Under the default plan a compiled training has as many graphs, breaks and frames as without."""

import logging

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn import functional as F  # noqa: N812
from torch.nn.modules.module import register_module_forward_pre_hook

import smdebug
from smdebug import modes
from smdebug.logger import get_logger
from smdebug.trials import create_trial
from tests.frameworks.pytorch.training import Net, batch, since

pytestmark = since("2.6", "graphs that contain what watches modules")

INPUTS, LABELS = batch()


class Functional(Net):
    """A model whose dropout and loss are functions."""

    def forward(self, x):
        return self.fc2(F.dropout(F.relu(self.fc1(x)), 0.1, self.training))


def loss_of(output):
    return F.cross_entropy(output, LABELS)


def whole_model(model, optimizer, options):
    called = torch.compile(model, **options, fullgraph=True)
    return lambda: updated(optimizer, lambda: loss_of(called(INPUTS)))


def model_in_place(model, optimizer, options):
    model.compile(**options, fullgraph=True)
    return lambda: updated(optimizer, lambda: loss_of(model(INPUTS)))


def part_of_a_model(model, optimizer, options):
    model.fc1 = torch.compile(model.fc1, **options)
    return lambda: updated(optimizer, lambda: loss_of(model(INPUTS)))


def model_and_loss(model, optimizer, options):
    called = torch.compile(lambda: loss_of(model(INPUTS)), **options, fullgraph=True)
    return lambda: updated(optimizer, called)


def whole_step(model, optimizer, options):
    return torch.compile(lambda: updated(optimizer, lambda: loss_of(model(INPUTS))), **options)


def updated(optimizer, loss):
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


def counted(make, place=None):
    """Train; return the numbers of graphs and breaks, and the parameters at the end."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    watching = None if place is None else smdebug.start(place)
    model = Functional()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = make(model, optimizer, {"backend": backend})
    for _ in range(25):
        step()
    if watching is not None:
        watching.stop()
    breaks = sum(counters["graph_break"].values())
    return len(graphs), breaks, [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("make", [whole_model, model_in_place, part_of_a_model, model_and_loss, whole_step])
def test_graphs_breaks_and_results_are_as_without(make, tmp_path):
    graphs, breaks, alone = counted(make)
    watched_graphs, watched_breaks, watched = counted(make, str(tmp_path / "run"))
    assert (watched_graphs, watched_breaks) == (graphs, breaks)
    assert all(torch.equal(*each) for each in zip(alone, watched, strict=True))


@pytest.mark.parametrize("make", [whole_model, model_in_place, part_of_a_model])
def test_nothing_is_compiled_again_beside_another_listener_to_all_modules(make, tmp_path):
    # Where there is another one, graphs depend on how many there are.
    handle = register_module_forward_pre_hook(lambda module, inputs: None)
    try:
        graphs, breaks, _ = counted(make)
        assert counted(make, str(tmp_path / "run"))[:2] == (graphs, breaks)
    finally:
        handle.remove()


@pytest.mark.parametrize("make", [whole_model, model_in_place, part_of_a_model])
def test_what_lies_at_the_boundary_of_a_graph_is_seen(make, tmp_path):
    place = str(tmp_path / "run")
    counted(make, place)
    trial = create_trial(place)
    assert len(trial.series("loss")) == 25
    statistics = trial.statistics(10, modes.TRAIN)
    assert {"parameters", "gradients", "updates"} <= set(statistics.kinds)
    if make is not model_in_place:
        assert any(name.endswith("_output_0") for name in statistics.of("outputs").names)


@since("2.7", "torch.compiler.is_exporting")
def test_what_lies_inside_a_graph_is_measured(tmp_path):
    handler = logging.Handler()
    logged = []
    handler.emit = lambda record: logged.append(record.getMessage())
    get_logger().addHandler(handler)
    counted(whole_model, str(tmp_path / "run"))
    get_logger().removeHandler(handler)
    assert [message for message in logged if "compiled graph" in message] == []
    assert {"fc1_output_0", "fc2_output_0"} <= set(create_trial(str(tmp_path / "run")).measured_tensors())
