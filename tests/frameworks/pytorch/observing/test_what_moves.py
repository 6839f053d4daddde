"""Parameters that should learn and do not: in no model, set back, or behind the wrong softmax."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.pytorch.observing.unregistered import Unregistered
from smdebug.runs import diagnose


def rows(steps):
    random = torch.Generator().manual_seed(3)
    for _ in range(steps):
        given = torch.randn(16, 8, generator=random)
        yield given, given.argmax(1)


def causes(place, model, parameters=None, loss=F.cross_entropy, after=None, steps=24):
    """Train as told, and return each cause with its title and places."""
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(list(parameters or model.parameters()), 1e-2)
    with smdebug.start(str(place)):
        for given, expected in rows(steps):
            optimizer.zero_grad()
            loss(model(given), expected).backward()
            optimizer.step()
            if after is not None:
                after(model)
    return {issue.cause: (issue.title, issue.where) for issue in diagnose(str(place)).issues}


class Net(nn.Module):
    """Has its hidden layers wherever `keep` puts them."""

    def __init__(self, keep=nn.ModuleList):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)
        self.hidden = keep([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, given):
        hidden = self.first(given)
        for layer in self.hidden:
            hidden = layer(hidden.relu())
        return self.last(hidden)


def everything(model):
    return [*model.parameters(), *(each for layer in model.hidden for each in layer.parameters())]


def test_layers_in_a_plain_list_are_found(tmp_path):
    assert causes(tmp_path / "run", Net(list)) == {
        "no gradient": ("Layers in a plain list are not trained", ("Net.hidden",))
    }


def test_layers_in_a_plain_list_that_the_optimizer_was_given_are_healthy(tmp_path):
    model = Net(list)
    assert causes(tmp_path / "run", model, everything(model)) == {}
    assert causes(tmp_path / "registered", Net()) == {}


class Scaled(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.scale = nn.Linear(8, 8), kind(torch.full((8,), 0.5))

    def forward(self, given):
        return self.layer(given) * self.scale


def test_a_plain_tensor_that_should_be_a_parameter_is_found(tmp_path):
    found = causes(tmp_path / "run", Scaled(torch.Tensor.requires_grad_))
    assert found == {"no gradient": ("A plain tensor is not trained", ("Scaled.scale",))}
    assert causes(tmp_path / "healthy", Scaled(nn.Parameter)) == {}


def test_what_is_hidden_on_purpose_is_left_alone():
    model = Net()
    model.reference = [Net().eval()]
    model.constant, model.frozen = torch.ones(3), [nn.Linear(2, 2).requires_grad_(False)]
    model.same = [model.first]
    assert not Unregistered([(model, "Net")])
    model.by_name = {"a": [nn.Linear(2, 2)]}
    assert Unregistered([(model, "Net")])


def test_the_path_of_a_hidden_parameter_is_that_of_the_code():
    model = Net()
    model.by_name = {"a": [nn.Linear(2, 2)]}
    model.by_name["a"][0](torch.ones(1, 2)).sum().backward()
    known = Unregistered([(model, "Net")])
    places = ["Net.by_name['a'][0].weight", "Net.by_name['a'][0].bias"]
    assert known.without_owner([]) == places
    owner = torch.optim.SGD(model.by_name["a"][0].parameters(), 0.1)
    assert known.without_owner([owner]) == []
    assert known.without_owner([torch.optim.SGD(model.parameters(), 0.1)]) == places


def test_a_weight_that_is_set_back_after_each_step_is_found(tmp_path):
    model = Net()
    kept = model.hidden[0].weight.detach().clone()

    def copy(model):
        model.hidden[0].weight.data.copy_(kept)

    assert causes(tmp_path / "run", model, after=copy, steps=42) == {
        "lost update": ("1 of 4 weights is set back after each step", ("Net_hidden.0.weight",))
    }


def test_weights_that_are_set_back_now_and_then_are_healthy(tmp_path):
    model, calls = Net(), []
    kept = {name: value.clone() for name, value in model.state_dict().items()}

    def restore(model):
        calls.append(1)
        if len(calls) == 4:  # after a search of the learning rate
            model.load_state_dict(kept)

    assert causes(tmp_path / "run", model, after=restore, steps=42) == {}


@pytest.mark.skipif(
    not hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata"),
    reason="PyTorch 2.1 keeps no shapes",
)
@pytest.mark.parametrize(("axis", "found"), [(0, {"loss input": "Softmax over the batch"}), (1, {})])
def test_a_softmax_over_the_batch_is_found(tmp_path, axis, found):
    def loss(scores, expected):
        return F.nll_loss(F.log_softmax(scores[:, :5], axis), expected % 5)

    titles = {cause: title for cause, (title, _) in causes(tmp_path / "run", Net(), loss=loss).items()}
    assert titles == found
