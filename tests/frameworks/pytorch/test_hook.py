"""The hook for PyTorch, on real trainings."""

import copy
import dataclasses
import json
import logging
import subprocess
import sys
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
import torch
from torch import nn

import smdebug.pytorch as smd
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from tests.frameworks.pytorch.training import (
    EVERY_STEP,
    Net,
    batch,
    hook_in,
    same,
    since,
    train,
    values,
)

OLD_RUN = Path(__file__).parents[2] / "golden" / "runs" / "pytorch_hook.expected.json"


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def trial_of(run):
    return smd.create_trial(str(run))


def forward_of(model, *inputs, run, **settings):
    """The trial of one forward, and of its backward."""
    with hook_in(run, **settings) as hook:
        hook.register_module(model)
        output = model(*inputs)
        loss = output if isinstance(output, torch.Tensor) else next(iter(hook.tensors_in(output)))
        if loss.requires_grad:
            loss.sum().backward()
    return trial_of(run)


# Names, collections, moments


def test_names_collections_and_steps_are_those_of_the_old_library(run):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(6, 5)
            self.relu = nn.ReLU()
            self.fc2 = nn.Linear(5, 3)

        def forward(self, x):
            return self.fc2(self.relu(self.fc1(x)))

    old = json.loads(OLD_RUN.read_text())
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reductions = smd.ReductionConfig(
        reductions=["mean", "variance"], norms=["l2"], abs_reductions=["max"]
    )
    hook = smd.Hook(
        str(run),
        export_tensorboard=True,
        save_config=smd.SaveConfig(save_interval=3),
        include_collections=["weights", "biases", "gradients", "relu_out"],
    )
    hook.get_collection("relu_out").include("relu_output")
    hook.get_collection("gradients").reduction_config = reductions
    hook.register_module(model)
    hook.register_loss(criterion)

    def forward():
        return criterion(model(torch.randn(4, 6)), torch.randint(0, 3, (4,)))

    hook.set_mode(smd.modes.TRAIN)
    for _ in range(7):
        loss = forward()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hook.save_scalar("foo", 1.0)
    hook.set_mode(smd.modes.EVAL)
    for _ in range(4):
        with torch.no_grad():
            forward()
        hook.save_scalar("foo", 2.0)
    hook.close()

    trial = trial_of(run)
    assert {str(s): [trial.mode(s).name, trial.mode_step(s)] for s in (0, 3, 6, 7, 10)} == old[
        "global_step_to_mode"
    ]
    for step, names in old["tensor_names_by_global_step"].items():
        assert trial.tensor_names(step=int(step)) == names
    for collection, names in old["tensor_names_by_collection"].items():
        assert trial.tensor_names(collection=collection) == names
    of_gradient = trial.tensor("gradient/Net_fc1.weight").reduction_values(3)
    assert set(of_gradient) == {("mean", False), ("variance", False), ("l2", False), ("max", True)}


def test_values_are_those_that_the_training_held(run):
    held = []

    def look(model, loss):
        held.append(
            {
                **{f"Net_{name}": p.detach().clone() for name, p in model.named_parameters()},
                **{f"gradient/Net_{n}": p.grad.clone() for n, p in model.named_parameters()},
                "CrossEntropyLoss_output_0": loss.detach().clone(),
            }
        )

    train(run, look=look, steps=3)
    trial = trial_of(run)
    for step, tensors in enumerate(held):
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(trial.tensor(name).value(step), tensor.numpy())
    outputs = trial.tensor("relu_output_0").value(1)
    np.testing.assert_array_equal(outputs, np.maximum(trial.tensor("fc1_output_0").value(1), 0))
    assert trial.tensor("CrossEntropyLoss_input_1").value(0).dtype == np.int64
    np.testing.assert_array_equal(
        trial.tensor("Net_output_0").value(2), trial.tensor("fc2_output_0").value(2)
    )


@pytest.mark.parametrize("interval", [1, 3])
def test_a_training_has_the_same_results_with_and_without_the_hook(run, interval):
    watched = train(run, steps=8, save_config=smd.SaveConfig(save_interval=interval))
    assert same(watched, train(steps=8))
    assert trial_of(run).steps() == list(range(0, 8, interval))


def test_by_default_only_losses_are_saved(run):
    train(run, steps=2, save_all=False)
    assert trial_of(run).tensor_names() == ["CrossEntropyLoss_output_0"]


def test_where_nothing_is_due_nothing_is_hooked(run):
    model = Net()
    with hook_in(run, save_config=smd.SaveConfig(save_interval=2)) as hook:
        hook.register_module(model)
        model(batch()[0])
        assert model.fc1._forward_hooks
        model(batch()[0])
        assert not model.fc1._forward_hooks
    assert not model._forward_pre_hooks


def test_only_layers_that_are_wanted_are_hooked(run):
    model = Net()
    with hook_in(run, save_all=False, include_regex="relu_output_3") as hook:
        hook.register_module(model)
        model(batch()[0])
        hooked = [name for name, layer in model.named_modules() if layer._forward_hooks]
    assert hooked == ["relu"]


def test_a_collection_takes_the_tensors_of_a_layer(run):
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU()))
    with hook_in(run, save_all=False, include_collections=["mine"]) as hook:
        hook.register_module(model)
        hook.get_collection("mine").add_module_tensors(model[1][0], inputs=True)
        with pytest.raises(SMDebugTypeError, match=r"nn\.Module"):
            hook.get_collection("mine").add_module_tensors("relu")
        model(torch.ones(2, 3))
    assert trial_of(run).tensor_names() == ["1.0_input_0", "1.0_output_0"]


def test_losses_of_functions_and_own_tensors_belong_to_the_step(run):
    model = Net()
    with hook_in(run, save_all=False) as hook:
        hook.register_module(model)
        for step in range(2):
            inputs, labels = batch()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            hook.record_tensor_value("ce_loss", loss)
            hook.save_scalar("speed", step)
            hook.save_tensor("labels", labels, collections_to_write="labels")
    trial = trial_of(run)
    assert trial.tensor_names(step=1) == ["ce_loss_output_0", "labels", "scalar/speed"]
    assert trial.tensor_names(collection="losses") == ["ce_loss_output_0"]
    assert trial.tensor("scalar/speed").value(1) == 1


# Gradients


def gradient(run, name, step=0):
    return trial_of(run).tensor(f"gradient/{name}").value(step)


def test_gradients_are_saved_as_they_were_clipped(run):
    held = []

    def clip(model, loss):
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        held.append(model.fc2.weight.grad.clone())

    train(run, look=clip)
    for step in range(4):
        np.testing.assert_array_equal(gradient(run, "Net_fc2.weight", step), held[step])


def test_accumulated_gradients_are_those_of_all_batches_so_far(run):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        for number in range(6):
            model(torch.full((1, 2), float(number + 1))).sum().backward()
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    sums = [gradient(run, "Linear_weight", step)[0, 0] for step in range(6)]
    assert sums == [1, 3, 6, 4, 9, 15]


def test_gradients_that_the_optimizer_of_another_part_leaves_are_those_of_the_last_backward(run):
    model = nn.Sequential(nn.Linear(8, 40), nn.Linear(40, 1))
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in model]
    held = []
    with hook_in(run, save_all=False, include_collections=["gradients"]) as hook:
        hook.register_module(model)
        for step in range(20):
            loss = model(batch()[0]).sum()
            model.zero_grad()  # lets go of gradients whose place the next ones may take
            loss.backward()
            held.append([layer.weight.grad.numpy().copy() for layer in model])
            optimizers[step % 2].step()
    trial = trial_of(run)
    for number in range(2):
        saved = values(trial, f"gradient/Sequential_{number}.weight")
        assert list(saved) == list(range(20))
        for step, value in saved.items():
            np.testing.assert_array_equal(value, held[step][number])


def test_gradients_of_a_training_that_updates_by_hand_are_saved(run):
    model = nn.Linear(2, 1, bias=False)
    with hook_in(run) as hook:
        hook.register_module(model)
        for number in range(3):
            model(torch.full((1, 2), float(number))).sum().backward()
            with torch.no_grad():
                model.weight -= model.weight.grad
            model.weight.grad = None
    assert [gradient(run, "Linear_weight", step)[0, 1] for step in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("as_keyword", [False, True])
def test_gradients_that_come_into_being_in_a_closure_are_those_of_its_first_call(run, as_keyword):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    seen = []

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).square().sum()
        loss.backward()
        seen.append(model.weight.grad.clone())
        return loss

    with hook_in(run) as hook:
        hook.register_module(model)
        firsts = []
        for _ in range(2):
            with hook.step():
                firsts.append(len(seen))
                optimizer.step(closure=closure) if as_keyword else optimizer.step(closure)
    for step, first in enumerate(firsts):
        np.testing.assert_array_equal(gradient(run, "Linear_weight", step), seen[first])


@since("2.4", "a GradScaler and fused optimizers for the CPU")
@pytest.mark.parametrize("fused", [False, True])
def test_gradients_under_a_loss_scale_are_unscaled(run, fused):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with hook_in(run) as hook:
        hook.register_module(model)
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(torch.full((1, 2), 3.0)).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    for step in range(3):
        np.testing.assert_array_equal(gradient(run, "Linear_weight", step), [[3, 3]])
    assert trial_of(run).tensor("Linear_output_0").value(0).dtype.name == "bfloat16"


def test_a_step_without_a_backward_saves_no_old_gradients(run):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        with torch.no_grad():
            model(torch.ones(1, 2))
    assert trial_of(run).tensor("gradient/Linear_weight").steps() == [0]


def test_an_evaluation_after_which_gradients_are_set_to_zero_has_none(run):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            hook.set_mode(smd.modes.TRAIN)
            model(batch()[0]).sum().backward()
            optimizer.step()
            hook.set_mode(smd.modes.EVAL)
            with torch.no_grad():
                model(batch()[0])
    saved = trial_of(run).tensor("gradient/Net_fc1.weight")
    assert saved.steps(smd.modes.TRAIN) == [0, 1, 2]
    assert saved.steps(smd.modes.EVAL) == []


def test_frozen_and_unused_parameters_have_weights_but_no_gradients(run):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(2, 2)
            self.unused = nn.Linear(2, 2)
            self.used.bias.requires_grad_(False)

        def forward(self, x):
            return self.used(x)

    trial = forward_of(Half(), torch.ones(1, 2), run=run)
    assert trial.tensor_names(regex="gradient") == ["gradient/Half_used.weight"]
    assert {"Half_used.bias", "Half_unused.weight"} <= set(trial.tensor_names())


def test_parameters_that_come_into_being_in_the_first_forward_are_saved_from_then_on(run, caplog):
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    with caplog.at_level(logging.WARNING, "smdebug"), hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_module(model)
        for _ in range(3):
            loss = model(batch()[0]).sum()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        hook.logger.removeHandler(caplog.handler)
    trial = trial_of(run)
    assert trial.tensor("Sequential_0.weight").steps() == [1, 2]
    assert trial.tensor("gradient/Sequential_0.weight").steps() == [0, 1, 2]
    assert trial.tensor("0_output_0").steps() == [0, 1, 2]
    assert len([r for r in caplog.records if "lazy" in r.getMessage()]) == 1


def test_shared_parameters_and_modules_used_again_keep_one_name(run):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.again = self.first
            self.tied = nn.Linear(2, 2)
            self.tied.weight = self.first.weight

        def forward(self, x):
            return self.tied(self.again(self.first(x)))

    model = Tied()
    trial = forward_of(model, torch.ones(1, 2), run=run)
    assert [name for name in trial.tensor_names() if "weight" in name] == [
        *("Tied_first.weight", "gradient/Tied_first.weight")
    ]
    np.testing.assert_array_equal(
        trial.tensor("gradient/Tied_first.weight").value(0), model.first.weight.grad
    )
    np.testing.assert_array_equal(
        trial.tensor("first_output_0").value(0), trial.tensor("first_input_1").value(0)
    )
    assert trial.has_tensor("first_output_1")
    assert not trial.has_tensor("first_output_2")


def test_sparse_gradients_are_written_out(run):
    model = nn.Sequential(nn.Embedding(4, 2, sparse=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hook_in(run) as hook:
        hook.register_module(model)
        model(torch.tensor([1, 1, 3])).sum().backward()
        optimizer.step()
    np.testing.assert_array_equal(gradient(run, "Sequential_0.weight")[:, 0], [0, 2, 0, 1])


# Layers


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
        *("inner_input_0", "inner_output_0")
    ]


def test_every_dtype_comes_back(run):
    tensors = {
        str(dtype).removeprefix("torch."): torch.tensor([1, 0, 3]).to(dtype)
        for dtype in (
            *(torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.bool),
            *(torch.uint8, torch.int8, torch.int16, torch.int64, torch.float8_e4m3fn),
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


def test_a_layer_that_cannot_be_saved_is_named_once_and_the_rest_goes_on(run, caplog):
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
    said = [r.getMessage() for r in caplog.records if "1_output_0" in r.getMessage()]
    assert len(said) == 1
    assert trial_of(run).tensor("0_output_0").steps() == [0, 1]


def test_of_a_scripted_layer_parameters_are_saved_and_the_rest_said_to_be_unseen(run, caplog):
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


def test_an_output_of_unknown_kind_is_named_once_and_the_rest_goes_on(run, caplog):
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
    (said,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
    assert said.startswith("1 returns a Box")
    assert trial_of(run).tensor("1_output_0").steps() == [0, 1]


# Modes and steps


def test_evaluation_counts_its_own_steps_and_saves_no_gradients(run):
    model, criterion = Net(), nn.CrossEntropyLoss()
    with hook_in(run) as hook:
        hook.register_module(model)
        hook.register_loss(criterion)
        for mode in (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.TRAIN):
            hook.set_mode(mode)
            inputs, labels = batch()
            with torch.set_grad_enabled(mode is smd.modes.TRAIN):
                loss = criterion(model(inputs), labels)
            if mode is smd.modes.TRAIN:
                loss.backward()
    trial = trial_of(run)
    assert trial.steps(smd.modes.TRAIN) == [0, 1]
    assert trial.steps(smd.modes.EVAL) == [0]
    assert not [n for n in trial.tensor_names(step=1) if n.startswith("gradient")]
    assert [n for n in trial.tensor_names(step=2) if n.startswith("gradient")]


def test_steps_begun_by_hand_are_not_begun_by_the_model_as_well(run):
    first, other = nn.Linear(2, 2), nn.Linear(2, 2)
    with hook_in(run) as hook:
        hook.register_module(first)
        hook.register_module(other)
        for _ in range(2):
            with hook.step(smd.modes.TRAIN):
                other(first(first(torch.ones(1, 2)))).sum().backward()
    trial = trial_of(run)
    assert trial.steps() == [0, 1]
    assert trial.tensor("gradient/Linear_weight").steps() == [0, 1]
    assert trial.tensor("Linear_output_1").steps() == [0, 1]
    assert trial.tensor("Linear-2_output_0").steps() == [0, 1]


def test_of_several_models_the_first_begins_the_steps(run):
    generator, critic = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1))
    with hook_in(run) as hook:
        hook.register_module(generator)
        hook.register_module(critic)
        for _ in range(3):
            critic(torch.ones(1, 2))
            critic(generator(torch.ones(1, 2)))
    trial = trial_of(run)
    assert trial.steps() == [0, 1, 2]
    assert trial.has_tensor("Sequential_0.weight")


def test_models_of_one_class_have_names_of_their_own(run):
    online, target = Net(), Net()
    with hook_in(run) as hook:
        hook.register_module(online)
        hook.register_module(target)
        with hook.step(smd.modes.TRAIN):
            inputs, _ = batch()
            (online(inputs) - target(inputs)).sum().backward()
    trial = trial_of(run)
    for name, model in {"Net": online, "Net-2": target}.items():
        weight = model.fc1.weight
        np.testing.assert_array_equal(
            trial.tensor(f"{name}_fc1.weight").value(0), weight.detach().numpy()
        )
        np.testing.assert_array_equal(gradient(run, f"{name}_fc1.weight"), weight.grad.numpy())
        assert trial.tensor(f"{name}_output_0").steps() == [0]


def test_a_layer_that_is_replaced_is_seen_in_the_next_step(run):
    model = Net()
    with hook_in(run, include_regex="fc2_output") as hook:
        hook.register_module(model)
        for _ in range(2):
            inputs, _ = batch()
            given = model(inputs)
            model.fc2 = nn.Linear(model.fc2.in_features, 7)
    saved = trial_of(run).tensor("fc2_output_0")
    assert [saved.value(step).shape[1] for step in (0, 1)] == [3, 7]
    np.testing.assert_array_equal(saved.value(1), given.detach().numpy())


def test_a_model_is_not_kept_alive_and_another_one_takes_its_place(run):
    with hook_in(run) as hook:
        for number in range(2):
            model = Net()
            hook.register_module(model)
            model(batch()[0]).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.1).step()
            is_gone = ref(model)
            del model
            hook.flush()
            assert is_gone() is None, number
    trial = trial_of(run)
    assert trial.tensor("Net_fc1.weight").steps() == [0]
    assert trial.tensor("Net-2_fc1.weight").steps() == [1]


def test_the_hook_is_made_from_json(run, tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(
            {
                "LocalPath": str(run),
                "HookParameters": {"save_interval": "2"},
                "CollectionConfigurations": [{"CollectionName": "biases"}],
            }
        )
    )
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
    assert smd.get_hook() is None
    hook = smd.get_hook(create_if_not_exists=True)
    assert isinstance(hook, smd.Hook)
    assert smd.get_hook() is hook
    model = Net()
    hook.register_hook(model)
    for _ in range(3):
        model(batch()[0])
    hook.close()
    trial = trial_of(run)
    assert trial.steps() == [0, 2]
    assert trial.tensor_names() == ["Net_fc1.bias", "Net_fc2.bias"]


# What is not the hook's to change, or to take along


def test_copies_and_saved_models_take_no_hook_along(run, tmp_path):
    model = Net()
    hook = hook_in(run)
    hook.register_module(model)
    model(batch()[0])
    twin = copy.deepcopy(model)
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    for other in (twin, loaded):
        other(batch()[0])
    assert hook.step == 0
    hook.close()
    assert trial_of(run).steps() == [0]


def test_a_saved_model_is_loaded_where_there_is_no_smdebug(run, tmp_path):
    model = nn.Sequential(nn.Linear(8, 2))
    with hook_in(run) as hook:
        hook.register_module(model)
        model(batch()[0])
        torch.save(model, tmp_path / "model.pt")
    elsewhere = f"""if True:
        import sys
        sys.modules["smdebug"] = None
        import torch
        model = torch.load({str(tmp_path / "model.pt")!r}, weights_only=False)
        print(model(torch.ones(1, 8)))
    """
    alone = subprocess.run(
        [sys.executable, "-c", elsewhere], check=False, capture_output=True, text=True
    )
    assert alone.stderr == ""
    assert alone.stdout.startswith("tensor([[")


def test_running_a_cell_again_begins_the_run_anew(run):
    model = Net()
    for times in (2, 3):
        hook = hook_in(run)
        hook.register_module(model)
        hook.register_module(model)
        for _ in range(times):
            model(batch()[0])
    hook.close()
    trial = trial_of(run)
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor("Net_output_0").steps() == [0, 1, 2]
    assert hook.training_run == 1


def test_wrong_things_are_refused_with_what_to_do(run):
    hook = hook_in(run)
    with pytest.raises(SMDebugTypeError, match=r"nn\.Module"):
        hook.register_module("model")
    with pytest.raises(SMDebugTypeError, match="record_tensor_value"):
        hook.register_loss(nn.functional.mse_loss)
    with pytest.raises(SMDebugValueError, match="compiled_layers"):
        smd.Hook(str(run), compiled_layers="maybe")


def test_an_exception_in_the_middle_of_a_step_leaves_what_was_saved(run):
    class Breaks(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.calls = 0

        def forward(self, x):
            x = self.first(x)
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt
            return x

    model = Breaks()
    with pytest.raises(KeyboardInterrupt), hook_in(run) as hook:
        hook.register_module(model)
        while True:
            model(torch.ones(1, 2))
    trial = trial_of(run)
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor("first_output_0").steps() == [0, 1, 2]
    assert trial.tensor("Breaks_output_0").steps() == [0, 1]
    assert not trial.loaded_all_steps
    index = json.loads(next(run.glob("index/*/000000000002_*.json")).read_text())
    assert index["meta"]["interrupted"] is True


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_data_loaders_in_processes_leave_the_run_alone(run, how):
    data = torch.utils.data.TensorDataset(torch.randn(8, 8), torch.randint(0, 3, (8,)))
    model = Net()
    with hook_in(run) as hook:
        hook.register_module(model)
        loader = torch.utils.data.DataLoader(
            data, batch_size=2, num_workers=2, multiprocessing_context=how
        )
        for inputs, _ in loader:
            model(inputs)
    assert trial_of(run).steps() == [0, 1, 2, 3]


def test_values_of_a_parameter_can_be_followed(run):
    train(run, steps=3, save_all=False, include_collections=["weights"], save_config=EVERY_STEP)
    found = values(trial_of(run), "Net_fc1.weight")
    assert sorted(found) == [0, 1, 2]
    assert not np.array_equal(found[0], found[2])
