"""Programs that change weights, gradients and optimizer state by design, so that no memory is to blame."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, prune
from torch.optim.swa_utils import AveragedModel

from tests.frameworks.pytorch.repeating.stored_training import (
    AT,
    CHECKED,
    Training,
    findings,
    in_memory,
    noted,
)


def all_data(training, change):
    for parameter in training.model.parameters():
        change(parameter.data)


def clipped_to_the_second_largest(values):
    """One value is changed."""
    bound = float(values.abs().flatten().sort().values[-2])
    values.clamp_(-bound, bound)


def resume(training):
    state = copy.deepcopy((training.model.state_dict(), training.optimizer.state_dict()))
    training.model.load_state_dict({name: each * 0.9 for name, each in state[0].items()})
    training.optimizer.load_state_dict(state[1])


def average(training):
    averaged = training.kept.setdefault("averaged", AveragedModel(training.model))
    averaged.update_parameters(training.model)
    for parameter, mean in zip(training.model.parameters(), averaged.module.parameters(), strict=True):
        parameter.data.copy_(0.5 * (mean.data + parameter.data))


def evaluate_with_average(training):
    """The weights are others for a while."""
    kept = {name: each.clone() for name, each in training.model.state_dict().items()}
    all_data(training, lambda values: values.mul_(0.5))
    with torch.no_grad():
        training.model.eval()(torch.randn(4, 8))
    training.model.train()
    for name, parameter in training.model.named_parameters():
        parameter.data.copy_(kept[name])


@torch.no_grad()
def multiply(training):
    for parameter in training.model.parameters():
        parameter.mul_(0.99)


def merge_adapter(training):
    training.model[2].weight.data += 0.01 * torch.randn(16, 2) @ torch.randn(2, 32)


def prune_in_place(training):
    for weight in (training.model[0].weight.data, training.model[2].weight.data):
        weight[weight.abs() < weight.abs().median()] = 0


def prune_one_value(training):
    values = training.model[0].weight.data.view(-1)
    values[values.abs().argmin()] = 0


def prune_once(training):
    if not prune.is_pruned(training.model):
        prune.l1_unstructured(training.model[2], "weight", amount=0.5)


def replace(training):
    layer = training.model[2].weight
    layer.data = layer.data * 0.9


def write(place):
    def change(training):
        in_memory(training.model[2].weight)[place] *= 0.5

    return change


def flatten(training):
    flat = nn.utils.parameters_to_vector(training.model.parameters()) * 0.99
    nn.utils.vector_to_parameters(flat, training.model.parameters())


def flipped(tensor):
    """A copy, of which PyTorch itself has changed one bit."""
    bits = tensor.detach().clone().view(torch.int32)
    bits[3, 5] ^= 1 << 26
    return bits.view(torch.float32)


def flip_by_pytorch(training):
    """The version counter tells that PyTorch did it."""
    training.model[2].weight.detach().view(torch.int32)[3, 5] ^= 1 << 26


def flip_elsewhere(training):
    """The weights lie in other memory."""
    training.model[2].weight.data = flipped(training.model[2].weight)


def flip_state(training):
    """The state is another tensor."""
    state = training.optimizer.state[training.model[2].weight]
    state["exp_avg"] = flipped(state["exp_avg"])


def turn_signs(training):
    """One bit of each of two tensors changes."""
    for at in (0, 2):
        training.model[at].weight.data[3, 5] *= -1


def restart_momentum(training):
    for state in training.optimizer.state.values():
        state["exp_avg"].data.zero_()


BETWEEN = {
    "resume": resume,
    "average": average,
    "evaluate with the average": evaluate_with_average,
    "multiply": multiply,
    "multiply data": lambda training: all_data(training, lambda values: values.mul_(0.5)),
    "clip": lambda training: all_data(training, lambda values: values.clamp_(-0.1, 0.1)),
    "clip one value of each": lambda training: all_data(training, clipped_to_the_second_largest),
    "clip one value": lambda training: clipped_to_the_second_largest(training.model[2].weight.data),
    "take magnitudes": lambda training: training.model[2].weight.data.abs_(),
    "merge an adapter": merge_adapter,
    "prune in place": prune_in_place,
    "prune one value": prune_one_value,
    "prune": prune_once,
    "replace": replace,
    "write a row": write(3),
    "write rows": write(slice(2, 7)),
    "write a column": write((slice(None), 4)),
    "write a block": write((slice(2, 9), slice(3, 20))),
    "flatten": flatten,
    "restart momentum": restart_momentum,
    "turn signs": turn_signs,
    "flip by PyTorch": flip_by_pytorch,
    "flip elsewhere": flip_elsewhere,
    "flip state": flip_state,
    "forget the state": lambda training: training.optimizer.state.clear(),
    "reset gradients": lambda training: training.optimizer.zero_grad(set_to_none=False),
}


def gradients(training):
    return [parameter.grad for parameter in training.model.parameters()]


def unscale(training):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.ones(1))
    scaler.unscale_(training.optimizer)


def centralise(training):
    gradient = training.model[2].weight.grad
    gradient.data -= gradient.data.mean(1, keepdim=True)


def apply(change):
    return lambda training: [change(gradient) for gradient in gradients(training)]


BEFORE_UPDATE = {
    "clip the norm": lambda training: clip_grad_norm_(training.model.parameters(), 0.01),
    "clip the norm at once": lambda training: clip_grad_norm_(
        training.model.parameters(), 0.01, foreach=True
    ),
    "clip values": lambda training: clip_grad_value_(training.model.parameters(), 0.01),
    "clip data": apply(lambda gradient: gradient.data.clamp_(-0.01, 0.01)),
    "clip one value": lambda training: clipped_to_the_second_largest(training.model[2].weight.grad.data),
    "divide data": apply(lambda gradient: gradient.data.div_(2)),
    "divide data of one": lambda training: training.model[2].weight.grad.data.div_(2),
    "add noise": apply(lambda gradient: gradient.data.add_(0.01 * torch.randn_like(gradient))),
    "unscale": unscale,
    "centralise": centralise,
    "reset": apply(lambda gradient: gradient.zero_()),
}
PROGRAMS = [("between", name) for name in BETWEEN] + [("before_update", name) for name in BEFORE_UPDATE]


@pytest.mark.parametrize(("moment", "name"), PROGRAMS)
def test_a_program_that_changes_what_is_stored_draws_no_finding(tmp_path, moment, name):
    """Even if it does so once, and nothing has changed before."""

    def change(step):
        if step == AT:
            (BETWEEN if moment == "between" else BEFORE_UPDATE)[name](training)

    training = Training()
    setattr(training, moment, change)
    training.run(tmp_path / "a")
    assert findings(tmp_path / "a") == []
    assert tuple(noted(tmp_path / "a")) == CHECKED
