"""The default rules on trainings with PyTorch, watched from one line."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.pytorch import Hook
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.made_runs import findings_of


def train(model, place, *, steps=12, autocast=None, targets=None, update=None):
    """Train on random rows; return the trial of the run."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(str(place)):
        for _ in range(steps):
            rows = torch.randn(16, 8)
            expected = rows.argmax(1) if targets is None else targets
            optimizer.zero_grad()
            with torch.autocast("cpu", autocast or torch.bfloat16, enabled=autocast is not None):
                loss = F.cross_entropy(model(rows).float(), expected)
            loss.backward()
            if update is not None:
                update(model, optimizer)
            else:
                optimizer.step()
    return create_trial(str(place))


def causes(trial):
    """Return the causes that the rules name, with their places."""
    found = {}
    for entry in CATALOG.values():
        for _, finding in findings_of(entry.load()(trial), trial.steps()):
            found.setdefault(finding.cause, set()).add(finding.tensor)
    return found


def layers():
    return [nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8)]


def test_a_healthy_training_passes(tmp_path):
    assert causes(train(nn.Sequential(*layers()), tmp_path / "run")) == {}


def test_softmax_before_cross_entropy_is_found(tmp_path):
    model = nn.Sequential(*layers(), nn.Softmax(1))
    assert causes(train(model, tmp_path / "run")) == {"loss input": {"Sequential_output_0"}}


def test_a_layer_that_the_optimizer_does_not_move_is_found(tmp_path):
    def update(model, optimizer):
        weight = model[2].weight
        kept = weight.detach().clone()
        restore = optimizer.register_step_post_hook(lambda *_: weight.data.copy_(kept))
        optimizer.step()
        restore.remove()

    found = causes(train(nn.Sequential(*layers()), tmp_path / "run", update=update))
    assert "Sequential_2.weight" in found.get("lost update", ())


def test_targets_that_the_criterion_ignores_are_not_labels(tmp_path):
    targets = torch.full((16,), -100)
    targets[:4] = torch.arange(4)
    trial = train(nn.Sequential(*layers()), tmp_path / "run", targets=targets)
    (term,) = trial.facts(0)["loss"]["terms"]
    assert (term["targets"], term["classes_seen"], term["largest_share"]) == (4, 4, 0.25)


class Escaping(nn.Module):
    """Computes its second layer out of autocast."""

    def __init__(self, escapes):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.escapes = escapes

    def forward(self, rows):
        hidden = self.first(rows)
        with torch.autocast("cpu", torch.bfloat16, enabled=not self.escapes):
            hidden = self.second(hidden.float())
        return self.third(hidden)


@pytest.mark.parametrize("escapes", [True, False])
def test_a_layer_that_autocast_does_not_reach_is_found(tmp_path, escapes):
    trial = train(Escaping(escapes), tmp_path / "run", autocast=torch.bfloat16)
    assert trial.facts(0)["autocast"] == "bfloat16"
    assert causes(trial) == ({"precision": {"second_output_0"}} if escapes else {})


@pytest.mark.parametrize("trains", [True, False])
def test_the_mode_of_a_step_begun_by_hand_is_that_of_its_first_forward_with_gradients(tmp_path, trains):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    hook = Hook(str(tmp_path))
    hook.register_module(model)
    inputs, targets = torch.randn(64, 8), torch.randint(0, 3, (64,))
    for at in range(0, 60, 4):
        with hook.step(smdebug.modes.TRAIN):
            model.eval()  # as at the end of a loop that evaluates
            with torch.no_grad():
                model(inputs[at : at + 4])
            model.train(trains)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs[at : at + 4]), targets[at : at + 4]).backward()
            optimizer.step()
            model.eval()
            model(inputs[at : at + 4])
    hook.close()
    trial = create_trial(str(tmp_path))
    found = findings_of(CATALOG["ModuleModes"].load()(trial), trial.steps())
    assert bool(found) is not trains
