"""Training scripts as people wrote them for the old library, with PyTorch."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import smdebug.pytorch as smd
from smdebug.exceptions import SMDebugTypeError

EVERY_STEP = smd.SaveConfig(save_interval=1)


@pytest.fixture
def run(tmp_path):
    return str(tmp_path / "run")


@pytest.fixture
def configured(run, tmp_path, monkeypatch):
    """Return a function that writes the hook's JSON configuration, as SageMaker does."""

    def write(collections, **parameters):
        path = tmp_path / "debughookconfig.json"
        path.write_text(
            json.dumps(
                {
                    "S3OutputPath": "s3://ignored",
                    "LocalPath": run,
                    "HookParameters": parameters,
                    "CollectionConfigurations": [
                        {"CollectionName": name, "CollectionParameters": of_collection}
                        for name, of_collection in collections.items()
                    ],
                }
            )
        )
        monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))

    return write


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 4)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


def batch():
    return torch.randn(5, 6), torch.randint(0, 3, (5,))


def train(hook, model, loss_of, steps=4):
    """Train as a script does; `loss_of` gets the outputs and the labels."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        inputs, labels = batch()
        optimizer.zero_grad()
        loss_of(model(inputs), labels).backward()
        optimizer.step()
    hook.close()


# Collections


class NetWithCollection(Net):
    """A model that adds a layer to a collection while it is made."""

    def __init__(self, hook):
        super().__init__()
        hook.get_collection("relus").add_module_tensors(self.relu, inputs=True, outputs=True)


def test_a_model_adds_its_layers_to_a_collection_before_it_is_registered(run):
    hook = smd.Hook(run, save_config=EVERY_STEP, include_collections=["relus"])
    model = NetWithCollection(hook)
    hook.register_module(model)
    train(hook, model, functional.cross_entropy)
    trial = smd.create_trial(run)
    assert trial.tensor_names(collection="relus") == ["relu_input_0", "relu_output_0"]
    assert trial.tensor("relu_output_0").steps() == [0, 1, 2, 3]


def test_a_layer_of_a_model_that_is_never_registered_is_named_in_a_warning(run, caplog):
    hook = smd.Hook(run, save_config=EVERY_STEP, include_collections=["relus"])
    other = NetWithCollection(hook)
    model = Net()
    hook.register_module(model)
    train(hook, model, nn.CrossEntropyLoss())
    warnings = [record.getMessage() for record in caplog.records if "relus" in record.getMessage()]
    assert len([text for text in warnings if "a ReLU" in text and "register_module" in text]) == 1
    assert not smd.create_trial(run).tensor_names(collection="relus")
    assert other is not model


def test_a_layer_that_was_added_to_a_collection_is_not_kept_alive(run):
    hook = smd.Hook(run, save_config=EVERY_STEP, include_collections=["relus"])
    NetWithCollection(hook)
    (unnamed,) = hook.get_collection("relus")._unnamed
    assert unnamed.module() is None
    hook.close()


def test_a_collection_of_the_users_own_is_added_with_its_modules(run):
    hook = smd.Hook(run, save_config=EVERY_STEP, include_collections=["mine"])
    model = Net()
    collection = smd.Collection("mine")
    collection.add_module_tensors(model.fc2)
    hook.register_module(model)
    hook.add_collection(collection)
    train(hook, model, functional.cross_entropy)
    assert smd.create_trial(run).tensor_names(collection="mine") == ["fc2_output_0"]


def test_old_names_for_preparing_and_closing_work(run):
    hook = smd.Hook(run, save_config=EVERY_STEP)
    hook.get_collection("relus").include("relu")
    hook._prepare_collections()
    model = Net()
    hook.register_hook(model)
    model(batch()[0])
    hook._cleanup()
    assert smd.create_trial(run).loaded_all_steps


# JSON configurations


def test_several_collections_in_json_each_have_their_steps(run, configured):
    configured(
        {
            "weights": {"save_interval": "2"},
            "gradients": {"save_interval": "4"},
            "biases": {"save_steps": "1,3"},
            "losses": {"train.save_interval": "3"},
        }
    )
    hook = smd.get_hook(create_if_not_exists=True)
    model, criterion = Net(), nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(criterion)
    hook.set_mode(smd.modes.TRAIN)
    train(hook, model, criterion, steps=6)
    trial = smd.create_trial(run)
    assert trial.tensor("Net_fc1.weight").steps() == [0, 2, 4]
    assert trial.tensor("gradient/Net_fc1.weight").steps() == [0, 4]
    assert trial.tensor("Net_fc1.bias").steps() == [0, 1, 3]
    assert trial.tensor("CrossEntropyLoss_output_0").steps() == [0, 3]


def test_save_all_in_json_saves_everything(run, configured):
    configured({}, save_all="true", save_interval="1")
    hook = smd.get_hook(create_if_not_exists=True)
    model, criterion = Net(), nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(criterion)
    train(hook, model, criterion, steps=1)
    names = smd.create_trial(run).tensor_names()
    parameters = [f"Net_{name}" for name, _ in model.named_parameters()]
    sides = [
        f"{layer}_{side}_0"
        for layer in ("Net", "fc1", "relu", "fc2", "CrossEntropyLoss")
        for side in ("input", "output")
    ]
    gradients = [f"gradient/{name}" for name in parameters]
    assert {*parameters, *gradients, *sides} <= set(names)


def test_reductions_in_json_are_saved_instead_of_values(run, configured):
    configured(
        {
            "gradients": {"save_interval": "1", "reductions": "min,max,l2"},
            "weights": {"save_interval": "1", "reductions": "abs_mean", "save_raw_tensor": "true"},
        }
    )
    hook = smd.get_hook(create_if_not_exists=True)
    model = Net()
    hook.register_module(model)
    train(hook, model, functional.cross_entropy, steps=2)
    trial = smd.create_trial(run)
    gradient, weight = trial.tensor("gradient/Net_fc1.weight"), trial.tensor("Net_fc1.weight")
    assert set(gradient.reduction_values(1)) == {("min", False), ("max", False), ("l2", False)}
    assert weight.reduction_value(1, "mean", abs=True) == pytest.approx(np.abs(weight.value(1)).mean())


def test_a_collection_in_json_selects_tensors_by_regex(run, configured):
    configured({"custom": {"include_regex": "relu_output|fc1_input", "save_interval": "1"}})
    hook = smd.get_hook(create_if_not_exists=True)
    model = Net()
    hook.register_module(model)
    train(hook, model, functional.cross_entropy, steps=1)
    trial = smd.create_trial(run)
    assert trial.tensor_names(collection="custom") == ["fc1_input_0", "relu_output_0"]


def test_a_custom_tensor_is_saved_to_a_collection_of_the_json(run, configured):
    configured({"custom": {"include_regex": "nothing", "save_interval": "1"}})
    hook = smd.get_hook(create_if_not_exists=True)
    model = Net()
    hook.register_module(model)
    model(batch()[0])
    hook.save_tensor("mine", torch.ones(3), collections_to_write="custom")
    hook.close()
    trial = smd.create_trial(run)
    assert trial.tensor_names(collection="custom") == ["mine"]
    np.testing.assert_array_equal(trial.tensor("mine").value(0), np.ones(3))


# Models on several devices


def test_a_data_parallel_model_has_names_and_outputs(run):
    model = nn.DataParallel(Net())
    hook = smd.Hook(run, save_config=EVERY_STEP, save_all=True)
    hook.register_module(model)
    train(hook, model, functional.cross_entropy, steps=2)
    trial = smd.create_trial(run)
    expected = {"Net_fc1.weight", "gradient/Net_fc1.weight", "relu_output_0", "Net_output_0"}
    assert expected <= set(trial.tensor_names(step=1))
    if not torch.cuda.is_available():
        assert trial.tensor("Net_output_0").value(1).shape == (5, 3)


# Losses


class Focal(nn.Module):
    """A loss whose name does not say so."""

    def forward(self, outputs, labels):
        return (outputs.gather(1, labels[:, None]) ** 2).mean()


class Both(nn.Module):
    """A loss that returns its parts."""

    def forward(self, outputs, labels):
        return {"main": functional.cross_entropy(outputs, labels), "norm": outputs.norm()}


def losses_in(run):
    return smd.create_trial(run).tensor_names(collection="losses")


def train_with(run, loss_of, *registered):
    """Train with the default configuration, and these losses registered."""
    hook = smd.Hook(run, save_config=EVERY_STEP)
    model = Net()
    hook.register_module(model)
    for loss in registered:
        hook.register_loss(loss)
    train(hook, model, lambda *of_batch: loss_of(hook, *of_batch))
    return losses_in(run)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), nn.NLLLoss(), Focal()], ids=repr)
def test_a_registered_loss_of_any_name_is_in_losses(run, loss):
    names = train_with(run, lambda hook, *of_batch: loss(*of_batch), loss)
    assert names == [f"{type(loss).__name__}_output_0"]
    assert smd.create_trial(run).tensor(names[0]).steps() == [0, 1, 2, 3]


def test_several_losses_are_in_losses(run):
    cross_entropy, focal = nn.CrossEntropyLoss(), Focal()
    names = train_with(
        run,
        lambda hook, *of_batch: cross_entropy(*of_batch) + focal(*of_batch),
        cross_entropy,
        focal,
    )
    assert names == ["CrossEntropyLoss_output_0", "Focal_output_0"]


def test_two_losses_of_one_class_are_numbered(run):
    first, second = Focal(), Focal()
    names = train_with(run, lambda hook, *of_batch: first(*of_batch) + second(*of_batch), first, second)
    assert names == ["Focal_output_0", "Focal_output_1"]


def test_losses_that_are_returned_in_a_dict_are_in_losses(run):
    both = Both()
    names = train_with(run, lambda hook, *of_batch: sum(both(*of_batch).values()), both)
    assert names == ["Both_output_0", "Both_output_1"]


def test_a_loss_that_is_registered_after_the_first_step_is_in_losses(run):
    focal, hook = Focal(), smd.Hook(run, save_config=EVERY_STEP)
    model = Net()
    hook.register_module(model)
    model(batch()[0])
    hook.register_loss(focal)
    train(hook, model, focal)
    assert losses_in(run) == ["Focal_output_0"]


def test_a_model_that_returns_its_loss_is_registered_as_a_loss_too(run):
    class Whole(Net):
        def forward(self, inputs):
            return super().forward(inputs).square().mean()

    hook, model = smd.Hook(run, save_config=EVERY_STEP), Whole()
    hook.register_module(model)
    hook.register_loss(model)
    train(hook, model, lambda loss, labels: loss)
    assert losses_in(run) == ["Whole_output_0"]


@pytest.mark.parametrize("name", ["nll_loss", "loss", "TotalLoss2", "criterion"])
def test_a_recorded_loss_of_a_function_is_in_losses(run, name):
    def loss_of(hook, outputs, labels):
        loss = functional.nll_loss(outputs.log_softmax(1), labels)
        hook.record_tensor_value(name, tensor_value=loss)
        return loss

    assert train_with(run, loss_of) == [f"{name}_output_0"]


def test_recorded_losses_in_a_dict_are_in_losses_and_what_is_not_a_loss_is_not(run):
    def loss_of(hook, outputs, labels):
        parts = {"main": functional.cross_entropy(outputs, labels), "norm": outputs.norm()}
        hook.record_tensor_value("parts", {**parts, "logits": outputs})
        hook.record_tensor_value("accuracy", (outputs.argmax(1) == labels).float().mean())
        return sum(parts.values())

    assert train_with(run, loss_of) == ["parts_output_0", "parts_output_1"]


def test_many_values_of_a_recorded_loss_are_all_in_losses(run):
    def loss_of(hook, outputs, labels):
        losses = [functional.cross_entropy(outputs, labels) for _ in range(20)]
        for loss in losses:
            hook.record_tensor_value("part", loss)
        return sum(losses)

    assert len(train_with(run, loss_of)) == 20


def test_a_function_is_not_registered_but_recorded(run):
    hook = smd.Hook(run)
    with pytest.raises(SMDebugTypeError, match="record_tensor_value"):
        hook.register_loss(functional.cross_entropy)
    hook.close()
