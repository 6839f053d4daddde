"""A hook that gets only a path follows the default plan; any choice keeps its old meaning."""

import json
import logging

import pytest
import torch
from torch import nn

import smdebug.pytorch as smd
from smdebug.config.json_config import create_hook_from_json_config
from smdebug.trials import create_trial
from tests.frameworks.pytorch.training import Net, batch, since
from tests.support.looking import each

TRAIN = smd.modes.TRAIN


def train(hook, steps=12):
    torch.manual_seed(0)
    model, criterion = Net(), nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(criterion)
    hook.set_mode(TRAIN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, labels = batch()
    for _ in range(steps):
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
    hook.close()
    return model


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "run")


def test_a_hook_with_a_path_and_nothing_else_follows_the_plan(place):
    hook = smd.Hook(place)
    assert hook.has_default_hook_configuration()
    train(hook)
    assert hook.has_default_hook_configuration()
    trial = create_trial(place)
    assert trial.steps(TRAIN) == [*range(11), 11]
    assert len(trial.series("loss")) == 12
    assert trial.tensor_names() == ["CrossEntropyLoss_output_0"]
    kinds = set(trial.statistics(10, TRAIN).kinds)
    assert kinds == {"parameters", "gradients", "updates", "inputs", "outputs"}


CHOICES = {
    "collections": {"include_collections": ["losses"]},
    "no collections": {"include_collections": []},
    "steps": {"save_config": smd.SaveConfig(save_interval=500)},
    "patterns": {"include_regex": ["fc1"]},
    "everything": {"save_all": True},
    "reductions": {"reduction_config": smd.ReductionConfig(reductions=["mean"])},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_any_option_that_chooses_tensors_keeps_its_meaning(place, choice):
    train(smd.Hook(place, **CHOICES[choice]))
    trial = create_trial(place)
    assert trial.steps(TRAIN) == [0]
    assert not trial.observations.exist


def test_a_collection_that_was_touched_is_a_choice(place):
    hook = smd.Hook(place)
    hook.get_collection("losses").save_config = smd.SaveConfig(save_interval=5)
    train(hook)
    trial = create_trial(place)
    assert trial.steps(TRAIN) == [0, 5, 10]
    assert not trial.observations.exist


def test_a_module_added_to_a_collection_is_a_choice(place):
    hook = smd.Hook(place)
    hook.get_collection("mine").add_module_tensors(nn.ReLU())
    assert not hook.follows_default_plan


def test_a_json_file_is_a_choice_even_if_it_names_a_path_alone(tmp_path):
    file = tmp_path / "hook.json"
    file.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    train(create_hook_from_json_config(smd.Hook, str(file)))
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps(TRAIN) == [0]
    assert not trial.observations.exist


def test_a_watched_training_is_the_same_to_the_last_bit(place, tmp_path):
    watched = train(smd.Hook(place))
    chosen = train(smd.Hook(str(tmp_path / "other"), include_collections=["losses"]))
    for parameter, other in each(zip(watched.parameters(), chosen.parameters(), strict=True), at_least=2):
        assert torch.equal(parameter, other)


@since("2.3", "a GradScaler for the CPU")
@pytest.mark.parametrize("options", [{}, {"include_collections": ["gradients"]}])
def test_gradients_of_an_update_that_the_scaler_skips_are_seen(place, options):
    hook = smd.Hook(place, **options)
    model = Net()
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    inputs, labels = batch()
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(1e4 * inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    hook.close()
    trial = create_trial(place)
    if options:
        assert not torch.isfinite(torch.from_numpy(gradient_of(trial))).all()
        return
    assert trial.statistics(0).row("gradient/Net_fc2.weight")["non_finite"] > 0
    facts = trial.facts(0)
    assert facts["update_skipped"]
    assert "optimizer_steps" not in facts


def gradient_of(trial):
    return trial.tensor("gradient/Net_fc2.weight").value(0)


def test_several_models_have_layer_names_of_their_own(place):
    hook = smd.Hook(place)
    first, second = (nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(2))
    hook.register_module(first)
    hook.register_module(second)
    second(first(torch.ones(2, 4)))
    hook.close()
    outputs = create_trial(place).statistics(0, kind="outputs").names
    assert sorted(outputs) == [
        "0_output_0",
        "1_output_0",
        "Sequential-2_0_output_0",
        "Sequential-2_1_output_0",
        "Sequential-2_output_0",
        "Sequential_output_0",
    ]


def test_updates_of_large_models_are_measured_of_samples(place, monkeypatch):
    monkeypatch.setattr("smdebug.pytorch.tensors.updates.MIN_BYTES", 0)
    monkeypatch.setattr("smdebug.pytorch.tensors.updates.SAMPLE_SIZE", 8)
    hook = smd.Hook(place)
    handler, logged = logging.Handler(), []
    handler.emit = lambda record: logged.append(record.getMessage())
    hook.logger.addHandler(handler)
    train(hook)
    hook.logger.removeHandler(handler)
    trial = create_trial(place)
    assert trial.facts(5, TRAIN)["updates_are_sampled"]
    rows = trial.statistics(5, TRAIN, kind="updates")
    assert rows.row("update/Net_fc1.weight")["count"] == 8
    assert rows.row("update/Net_fc2.bias")["count"] == 3
    assert len([message for message in logged if "Updates are measured" in message]) == 1
