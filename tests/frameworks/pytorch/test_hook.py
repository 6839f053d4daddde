"""The hook for PyTorch, on real trainings: names, collections, exceptions and saved models."""

import copy
import json
import subprocess
import sys
from pathlib import Path

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
    train,
    trial_of,
    values,
)

OLD_RUN = Path(__file__).parents[2] / "golden" / "runs" / "pytorch_hook.expected.json"


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
    reductions = smd.ReductionConfig(reductions=["mean", "variance"], norms=["l2"], abs_reductions=["max"])
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
        for _ in range(12):  # at step 11 nothing is observed beside what is saved
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
    alone = subprocess.run([sys.executable, "-c", elsewhere], check=False, capture_output=True, text=True)
    assert alone.stderr == ""
    assert alone.stdout.startswith("tensor([[")


def test_running_a_cell_again_begins_the_run_again(run):
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
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context=how)
        for inputs, _ in loader:
            model(inputs)
    assert trial_of(run).steps() == [0, 1, 2, 3]


def test_values_of_a_parameter_can_be_followed(run):
    train(run, steps=3, save_all=False, include_collections=["weights"], save_config=EVERY_STEP)
    found = values(trial_of(run), "Net_fc1.weight")
    assert sorted(found) == [0, 1, 2]
    assert not np.array_equal(found[0], found[2])
