"""What PyTorch's hook observes of a training beside the tensors that somebody chose."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.runs import diagnose
from smdebug.trials import create_trial
from tests.saving.saved_files import index_of, names_at

USUAL = ("weights", "biases", "gradients", "losses")
EVERY_TENTH = smdebug.SaveConfig(save_interval=10)


def train(place, collections=USUAL, *, steps=31, last=(), scale=1.0, accumulated=1, compiled=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), *last)
    called = torch.compile(model, backend="eager") if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    with smdebug.start(str(place), include_collections=collections, save_config=EVERY_TENTH):
        for step in range(steps):
            rows = torch.randn(16, 8)
            loss = F.cross_entropy(called(rows * scale), rows.argmax(1))
            loss.backward()
            losses.append(loss.item())
            if step % accumulated == accumulated - 1:
                optimizer.step()
                optimizer.zero_grad()
    return losses


def test_the_loss_of_every_step_and_the_rate_are_seen(tmp_path):
    losses = train(tmp_path)

    seen = create_trial(str(tmp_path)).observations.judged(30)
    assert seen.series("loss")[:, 3].tolist() == losses[21:]
    assert seen.series("learning_rate/0/0")[:, 3].tolist() == [0.1]


def test_the_run_has_the_chosen_tensors_and_no_others(tmp_path):
    train(tmp_path)

    trial = create_trial(str(tmp_path))
    parameters = ["Sequential_0.bias", "Sequential_0.weight", "Sequential_2.bias", "Sequential_2.weight"]
    gradients = [f"gradient/{name}" for name in parameters]
    assert trial.tensor_names() == sorted([*parameters, *gradients, "loss_output_0"])
    assert names_at(tmp_path, 30) == [*names_at(tmp_path, 0)]
    assert trial.steps() == [0, 10, 20, 30]


def test_updates_are_measured_and_never_saved(tmp_path):
    train(tmp_path, ["all"])

    trial = create_trial(str(tmp_path))
    assert not [name for name in trial.tensor_names() if name.startswith("update/")]
    seen = trial.observations.judged(20)
    assert "update/Sequential_0.weight" in seen.statistics("updates").names
    assert seen.statistics("outputs") is not None


@pytest.mark.parametrize(
    ("fault", "cause"),
    [({"last": (nn.Softmax(1),)}, "loss input"), ({"scale": 20000.0}, "unscaled input")],
)
def test_a_fault_that_no_chosen_tensor_shows_is_named(tmp_path, fault, cause):
    train(tmp_path, **fault)

    assert cause in [issue.cause for issue in diagnose(tmp_path).issues]


@pytest.mark.parametrize("collections", [USUAL, ["losses"], ["all"]])
def test_a_healthy_training_passes(tmp_path, collections):
    train(tmp_path, collections)

    found = diagnose(tmp_path)
    assert found.issues == ()
    assert {"LossInput", "GradientsNotReset", "LearningRate", "NonFiniteValues"} <= set(found.passed)


def test_gradients_that_are_accumulated_move_no_chosen_step(tmp_path):
    train(tmp_path, accumulated=4)

    assert create_trial(str(tmp_path)).steps() == [0, 10, 20, 30]


def test_a_compiled_model_of_which_weights_are_chosen_draws_no_warning(tmp_path, caplog):
    train(tmp_path, ["weights"], compiled=True)

    assert "are not saved" not in caplog.text
    assert create_trial(str(tmp_path)).observations.judged(30).facts["optimizer_steps"]


def test_a_training_watched_by_the_default_plan_observes_nothing_beside(tmp_path):
    with smdebug.start(str(tmp_path)):
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()

    assert "observed_payload" not in index_of(tmp_path, 0)["meta"]
    assert create_trial(str(tmp_path)).observations.exist
