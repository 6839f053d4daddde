"""Copies of the trained model that are called beside it and do not change."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug import modes
from smdebug.pytorch.modules.copies import Copies
from smdebug.trials import create_trial

pytestmark = pytest.mark.usefixtures("nothing_was_compiled")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 4)

    def forward(self, rows):
        return self.head(self.body(rows))


def noted(place, model, given, after=lambda step: None, steps=8):
    """Train with the targets that `given` computes; return what is noted of a copy at each saved step."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(str(place)):
        for step in range(steps):
            rows = torch.randn(16, 4)
            with torch.no_grad():
                targets = given(rows) + 1
            loss = F.mse_loss(model(rows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after(step)
    trial = create_trial(str(place))
    return [trial.facts(step).get("copied_model") for step in trial.steps(mode=modes.TRAIN)]


def _raise(error):
    raise error


SAME = {"model": "Net", "of": "Net_body.0.weight", "is_same": True}


def test_a_copy_is_noted_from_the_third_saved_step_on(tmp_path):
    model = Net()
    assert noted(tmp_path / "run", model, copy.deepcopy(model)) == [None] * 2 + [SAME] * 6


def test_a_copy_of_a_part_is_noted_with_the_first_parameter_of_it(tmp_path):
    model = Net()
    head = copy.deepcopy(model.head)
    found = noted(tmp_path / "run", model, lambda rows: head(rows.repeat(1, 2)))
    assert found[-1] == {"model": "Linear", "of": "Net_head.weight", "is_same": True}


def test_a_copy_that_follows_at_each_step_is_none(tmp_path):
    model = Net()
    target = copy.deepcopy(model)

    def follow(step):
        with torch.no_grad():
            for own, other in zip(target.parameters(), model.parameters(), strict=True):
                own.lerp_(other, 0.01)

    assert noted(tmp_path / "run", model, target, follow) == [None] * 8


def test_that_a_copy_has_followed_is_noted_once(tmp_path):
    model = Net()
    target = copy.deepcopy(model)

    def follow(step):
        if step == 4:
            target.load_state_dict(model.state_dict())

    found = noted(tmp_path / "run", model, target, follow)
    assert found == [None] * 2 + [SAME] * 3 + [{**SAME, "is_same": False}] + [None] * 2


def test_a_model_of_the_same_form_and_other_weights_is_no_copy(tmp_path):
    assert noted(tmp_path / "run", Net(), Net()) == [None] * 8


def test_a_copy_that_is_not_called_is_not_noted(tmp_path):
    model = Net()
    kept = copy.deepcopy(model)
    assert noted(tmp_path / "run", model, lambda rows: rows) == [None] * 8
    assert kept is not model


def test_a_copy_of_a_copy_takes_no_callbacks_along(tmp_path):
    model = Net()
    target = copy.deepcopy(model)
    copies = []
    noted(tmp_path / "run", model, target, lambda step: copies.append(copy.deepcopy(target)))
    assert not target._forward_pre_hooks
    assert all(each(torch.ones(2, 4)) is not None for each in copies)


@pytest.mark.parametrize("is_called", [True, False])
def test_modules_are_no_longer_looked_at_after_some_steps(is_called):
    model = Net()
    parameters = [(name, value) for name, value in model.named_parameters()]
    trained = frozenset(map(id, model.modules()))
    copies, target = Copies(_raise), copy.deepcopy(model)
    for _ in range(5):
        assert copies.begin_step(parameters, trained) is None
    if is_called:
        target(torch.ones(2, 4))
    assert copies.begin_step(parameters, trained) is None
    assert not torch.nn.modules.module._global_forward_pre_hooks
    copies.close()


def test_what_goes_wrong_with_a_module_does_not_reach_the_training():
    class Odd(nn.Linear):
        def parameters(self, recurse=True):
            raise RuntimeError("no parameters to list")

    model, failures = Net(), []
    copies = Copies(failures.append)
    for _ in range(2):
        copies.begin_step([*model.named_parameters()], frozenset())
    Odd(2, 2)(torch.ones(1, 2))
    assert [str(each) for each in failures] == ["no parameters to list"]
    assert not torch.nn.modules.module._global_forward_pre_hooks
