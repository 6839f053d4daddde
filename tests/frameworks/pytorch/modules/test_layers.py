"""Inputs, outputs and parameters of layers that the hook for PyTorch saves."""

import dataclasses
import logging

import numpy as np
import pytest
import torch
from torch import nn

import smdebug.pytorch as smd
from tests.frameworks.pytorch.training import (
    batch,
    forward_of,
    gradient,
    hook_in,
    trial_of,
)


@dataclasses.dataclass
class Answer:
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...]
    note: str = "no tensor"


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: (x, [x, (x,)]),
        lambda x: {"a": x, "b": {"c": x, "d": [x, None]}},
        lambda x: Answer(x, (x, x)),
    ],
    ids=["tuple", "dict", "dataclass"],
)
def test_outputs_in_whatever_they_are_nested_are_numbered(run, answer):
    class Many(nn.Module):
        def forward(self, x, scale=None):
            return answer(x * scale)

    model = Many()
    with hook_in(run) as hook:
        hook.register_module(model)
        model(torch.ones(2), scale=torch.tensor(3.0))
    trial = trial_of(run)
    assert trial.tensor_names() == ["Many_input_0", "Many_input_1"] + [
        f"Many_output_{number}" for number in range(3)
    ]
    assert trial.tensor("Many_input_1").value(0) == 3


def test_tensors_are_saved_as_they_were_before_a_layer_changed_them(run):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    with torch.no_grad():
        model[0].weight.fill_(-1)
        model[0].bias.zero_()
    trial = forward_of(model, torch.ones(1, 2), run=run)
    np.testing.assert_array_equal(trial.tensor("0_output_0").value(0), [[-2, -2]])
    np.testing.assert_array_equal(trial.tensor("1_output_0").value(0), [[0, 0]])


def test_recurrent_layers_and_attention_are_seen(run):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 4, batch_first=True)
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x):
            x, _ = self.lstm(x)
            return self.attention(x, x, x)[0]

    trial = forward_of(Both(), torch.randn(2, 5, 3), run=run)
    assert [n for n in trial.tensor_names() if n.startswith("lstm_output")] == [
        f"lstm_output_{number}" for number in range(3)
    ]
    assert trial.tensor("attention_output_1").value(0).shape == (2, 5, 5)


def test_what_checkpointing_computes_again_is_not_saved_again(run):
    class Saving(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)

    trial = forward_of(Saving(), torch.ones(1, 2), run=run)
    assert [n for n in trial.tensor_names() if n.startswith("inner")] == [
        "inner_input_0",
        "inner_output_0",
    ]


def test_every_dtype_comes_back(run):
    tensors = {
        str(dtype).removeprefix("torch."): torch.tensor([1, 0, 3]).to(dtype)
        for dtype in (
            torch.bfloat16,
            torch.float16,
            torch.float64,
            torch.complex64,
            torch.bool,
            torch.uint8,
            torch.int8,
            torch.int16,
            torch.int64,
            torch.float8_e4m3fn,
        )
    }
    with hook_in(run) as hook, hook.step():
        hook.record_all(tensors)
        hook.record("conjugate", torch.tensor([1 + 2j]).conj())
        hook.record("every second", torch.arange(6)[::2])
    trial = trial_of(run)
    found = {name: trial.tensor(name).value(0) for name in tensors}
    assert {n: v.dtype.name for n, v in found.items()} == {
        **{name: name for name in tensors},
        "float8_e4m3fn": "float32",
    }
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name].astype(complex), tensor.to(torch.complex64))
    assert trial.tensor("conjugate").value(0) == 1 - 2j
    np.testing.assert_array_equal(trial.tensor("every second").value(0), [0, 2, 4])


def test_a_layer_that_cannot_be_saved_is_named_once_and_the_rest_continues(run, caplog):
    class Odd(nn.Module):
        def forward(self, x):
            return torch.empty(2, device="meta")

    model = nn.Sequential(nn.Linear(2, 2), Odd())
    with caplog.at_level(logging.WARNING, "smdebug"), hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_module(model)
        model(torch.ones(1, 2))
        model(torch.ones(1, 2))
        hook.logger.removeHandler(caplog.handler)
    messages = [r.getMessage() for r in caplog.records if "1_output_0" in r.getMessage()]
    assert len(messages) == 1
    assert trial_of(run).tensor("0_output_0").steps() == [0, 1]


def test_of_a_scripted_layer_parameters_are_saved_and_the_rest_reported_as_unseen(run, caplog):
    scripted = torch.jit.script(nn.Sequential(nn.Linear(8, 4), nn.ReLU()))
    model = nn.Sequential(scripted, nn.Linear(4, 1))
    with caplog.at_level(logging.WARNING, "smdebug"), hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_module(model)
        for _ in range(2):
            model(batch()[0]).sum().backward()
        hook.logger.removeHandler(caplog.handler)
    trial = trial_of(run)
    for name in ("Sequential_0.0.weight", "gradient/Sequential_0.0.weight", "1_output_0"):
        assert trial.tensor(name).steps() == [0, 1]
    assert [r.getMessage().split(" are not saved")[0] for r in caplog.records] == [
        "Inputs and outputs of the layer 0.0 and of 1 others",
        "Inputs and outputs of the layer 0",
    ]


def test_a_scripted_model_is_saved_at_steps_that_are_begun_by_hand(run, caplog):
    model = torch.jit.script(nn.Linear(8, 1))
    with caplog.at_level(logging.WARNING, "smdebug"), hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_module(model)
        with hook.step(smd.modes.TRAIN):
            model(batch()[0]).sum().backward()
        hook.logger.removeHandler(caplog.handler)
    assert gradient(run, "Linear_weight").shape == (1, 8)
    assert "with hook.step" in caplog.records[0].getMessage()


def test_an_output_of_unknown_kind_is_named_once_and_the_rest_continues(run, caplog):
    class Box:
        def __init__(self, tensor):
            self.tensor = tensor

    class Boxes(nn.Module):
        def forward(self, x):
            return x, None, "note", Box(x)

    model = nn.Sequential(nn.Linear(2, 2), Boxes())
    with hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_module(model)
        for _ in range(2):
            model(torch.ones(1, 2))
        hook.logger.removeHandler(caplog.handler)
    (warning,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
    assert warning.startswith("1 returns a Box")
    assert trial_of(run).tensor("1_output_0").steps() == [0, 1]
