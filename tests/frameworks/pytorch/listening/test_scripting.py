"""`torch.jit` compiles and traces watched models as if they were not watched."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
import smdebug.pytorch as smd
from smdebug import modes
from smdebug.trials import create_trial
from tests.frameworks.pytorch.training import EVERY_STEP


class Model(nn.Module):
    """A model with functions that are watched: dropout and a criterion."""

    def __init__(self):
        super().__init__()
        self.first, self.dropout, self.last = nn.Linear(8, 6), nn.Dropout(0.2), nn.Linear(6, 3)

    def forward(self, x, labels):
        x = F.dropout(torch.relu(self.first(x)), 0.1, self.training)
        return F.cross_entropy(self.last(self.dropout(x)), labels)


def train(model, steps=5):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(5, 8), torch.randint(0, 3, (5,))).backward()
        optimizer.step()


def trained_and_compiled(compile_model, watch=lambda model: model):
    torch.manual_seed(7)
    model = Model()
    watch(model)
    train(model)
    model.eval()
    compiled = compile_model(model)
    evaluated = compiled(torch.ones(2, 8), torch.tensor([0, 1]))
    graph = str(compiled.graph)
    model.train()
    train(model)
    return [*model.state_dict().values(), evaluated], graph


def traced(model):
    return torch.jit.trace(model, (torch.zeros(2, 8), torch.tensor([0, 1])))


def assert_same(watched, alone):
    assert all(torch.equal(*pair) for pair in zip(watched, alone, strict=True))


@pytest.mark.parametrize("compile_model", [torch.jit.script, traced])
def test_a_model_is_compiled_in_between_and_trained_on(compile_model, tmp_path):
    alone, graph = trained_and_compiled(compile_model)
    with smdebug.start(tmp_path / "run"):
        watched, graph_of_watched = trained_and_compiled(compile_model)
    assert_same(watched, alone)
    assert graph_of_watched.count("aten::") == graph.count("aten::")
    trial = create_trial(str(tmp_path / "run"))
    # A traced model is evaluated before its sixth step, whose number that has.
    evaluated = trial.steps(modes.EVAL)
    assert trial.steps(modes.TRAIN) == [step for step in range(10) if step != 5 or not evaluated]
    assert {"outputs", "gradients"} <= set(trial.statistics(9, modes.TRAIN).kinds)


def test_a_model_that_is_registered_is_compiled(tmp_path):
    alone, _ = trained_and_compiled(torch.jit.script)
    hook = smd.Hook(str(tmp_path / "run"), save_all=True, save_config=EVERY_STEP)
    watched, _ = trained_and_compiled(torch.jit.script, hook.register_module)
    hook.close()
    assert_same(watched, alone)
    outputs = create_trial(str(tmp_path / "run")).tensor("last_output_0")
    assert len(outputs.steps(modes.GLOBAL)) == 10


def test_callbacks_of_the_user_stay_in_their_order(tmp_path):
    called = []
    model = Model()
    for name in "ab":
        model.last.register_forward_hook(lambda *_, name=name: called.append(name))
    with smdebug.start(tmp_path / "run"):
        train(model)
        with pytest.raises(RuntimeError):  # TorchScript has no such function
            torch.jit.script(model)
        train(model, 1)
    assert called == [*"ab"] * 6
    assert len(create_trial(str(tmp_path / "run")).series("loss")) == 6


def trained_while_compiled():
    torch.manual_seed(7)
    model = torch.jit.script(Model())
    train(model, 13)
    return [*model.state_dict().values(), torch.randn(2)]


def test_the_training_of_a_compiled_model_is_watched(tmp_path):
    alone = trained_while_compiled()
    with smdebug.start(tmp_path / "run"):
        watched = trained_while_compiled()
    assert_same(watched, alone)
    trial = create_trial(str(tmp_path / "run"))
    assert len(trial.series("loss")) == 13
    assert trial.steps(modes.TRAIN) == [*range(11), 12]
    assert {"parameters", "gradients", "updates"} <= set(trial.statistics(10, modes.TRAIN).kinds)
