"""Weights, gradients and optimizer state that change in memory, and updates that go wrong."""

import importlib

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, parametrizations

from smdebug.pytorch.repeating import stored_copies
from smdebug.pytorch.repeating.stored import Stored, together
from tests.frameworks.pytorch.repeating.stored_training import (
    AT,
    CHECKED,
    Training,
    findings,
    flip,
    in_memory,
    noted,
    plain,
)

KINDS = ("stored_weights", "stored_gradients", "stored_state", "update")


def test_a_sound_machine_keeps_all_bits_and_the_training_is_what_it_was(tmp_path):
    without = Training().run(tmp_path / "without", every=None)
    assert all(map(torch.equal, Training().run(tmp_path / "a"), without))
    found = noted(tmp_path / "a")
    assert tuple(found) == CHECKED
    for fact in found.values():
        assert [fact[kind] for kind in KINDS] == [{"equal": each} for each in (6, 6, 18, 24)]
    assert findings(tmp_path / "a") == []


@pytest.mark.parametrize(
    ("moment", "tensor_of", "title", "tensor"),
    [
        ("between", lambda training: training.model[2].weight, "Weights", "Sequential_2.weight"),
        ("before_update", lambda training: training.model[2].weight, "Weights", "Sequential_2.weight"),
        (
            "before_update",
            lambda training: training.model[0].weight.grad,
            "Gradients",
            "gradient/Sequential_0.weight",
        ),
        (
            "between",
            lambda training: training.optimizer.state[training.model[2].weight]["exp_avg_sq"],
            "Optimizer state",
            "Sequential_2.weight",
        ),
    ],
    ids=["weights", "weights between the passes", "gradients", "state"],
)
@pytest.mark.parametrize("form", ["bit", "run"])
def test_what_changes_in_memory_is_found_with_its_rank_and_its_place(
    tmp_path, moment, tensor_of, title, tensor, form
):
    def damage(step):
        if step == AT and form == "bit":
            flip(tensor_of(training), 77)
        elif step == AT:
            in_memory(tensor_of(training)).reshape(-1)[37:99] *= 4

    training = Training()
    setattr(training, moment, damage)
    training.run(tmp_path / "a")
    (found,) = findings(tmp_path / "a")
    assert (found.since, found.worker, found.tensor) == (AT, "worker_0", tensor)
    assert found.title == f"{title} on worker_0 changed in memory"
    assert found.value == (1 if form == "bit" else 62)
    assert found.why[1].endswith("At 5 earlier steps, no bit had changed")


def test_an_update_that_goes_wrong_once_is_found(tmp_path, monkeypatch):
    """The step of the training has all parameters, and that on copies one at a time."""
    training = Training()
    of_adam = importlib.import_module("torch.optim.adam")
    right = of_adam.adam

    def wrong(parameters, *others, **options):
        right(parameters, *others, **options)
        if len(parameters) == 6 and training.step == AT:
            flip(parameters[2], 5, bit=3)

    monkeypatch.setattr(of_adam, "adam", wrong)
    training.run(tmp_path / "a")
    (found,) = findings(tmp_path / "a")
    assert (found.since, found.tensor) == (AT, "Sequential_2.weight")
    assert found.message == (
        f"Computed again, the update of Sequential_2.weight at step {AT} is not what the training used"
    )
    assert found.title == "A computation on worker_0 went wrong once"


def test_a_change_before_two_steps_were_equal_and_all_after_it_are_the_program_s(tmp_path):
    training = Training()
    training.between = lambda step: step in (2, AT) and flip(training.model[0].weight, 9)
    training.run(tmp_path / "a")
    assert [noted(tmp_path / "a")[step]["stored_weights"].get("form") for step in (2, 3, AT)] == [
        "bit",
        None,
        "bit",
    ]
    assert findings(tmp_path / "a") == []


def tied():
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 2))
    model[3].weight = model[2].weight
    return model


def sharing_memory():
    """Two parameters lie in the same memory."""
    model = tied()
    model[3].weight = nn.Parameter(model[2].weight.data)
    return model


def spectral():
    model = plain()
    parametrizations.spectral_norm(model[2])
    return model


@pytest.mark.parametrize("make", [tied, sharing_memory, spectral])
def test_models_that_change_weights_themselves_draw_no_finding(tmp_path, make):
    Training(make).run(tmp_path / "a")
    assert findings(tmp_path / "a") == []
    for fact in noted(tmp_path / "a").values():
        assert fact.get("update", {"equal": 0}).keys() == {"equal"}
        assert ("update" in fact) == (make is not sharing_memory)


OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"amsgrad": True},
    "AdamW": {"foreach": True},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Adagrad": {},
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "ASGD": {"t0": 3},
    "Rprop": {},
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_optimizers_of_pytorch_give_the_same_on_copies(tmp_path, name):
    def make(model):
        half = [*model.parameters()]
        groups = [{"params": half[:2]}, {"params": half[2:], "lr": 0.003}]
        return getattr(torch.optim, name)(groups, lr=0.01, **OPTIMIZERS[name])

    without = Training(optimizer=make).run(tmp_path / "without", every=None)
    assert all(map(torch.equal, Training(optimizer=make).run(tmp_path / "a"), without))
    found = noted(tmp_path / "a")
    assert tuple(found) == CHECKED
    assert all(fact["update"].keys() == {"equal"} for fact in found.values())


class Closure(Training):
    """The optimizer computes the loss, and the program clips the gradients within its step."""

    def update(self, loss):
        def closure():
            self.optimizer.zero_grad()
            value = loss()
            value.backward()
            clip_grad_value_(self.model.parameters(), 0.01)
            return value

        self.optimizer.step(closure)


class Accumulating(Training):
    def update(self, loss):
        (loss() / 2).backward()
        if self.step % 2:
            self.optimizer.step()
            self.optimizer.zero_grad()


class Alternating(Training):
    """Each layer has an optimizer, of which one updates at every other step."""

    def update(self, loss):
        if not self.kept:
            self.kept = {
                at: torch.optim.SGD(self.model[at].parameters(), lr=0.1, momentum=0.9) for at in (0, 2)
            }
        loss().backward()
        for at, optimizer in self.kept.items():
            if at or self.step % 2:
                optimizer.step()
                optimizer.zero_grad()


@pytest.mark.parametrize("kind", [Closure, Accumulating, Alternating])
def test_trainings_of_other_forms_draw_no_finding(tmp_path, kind):
    kind().run(tmp_path / "a")
    assert findings(tmp_path / "a") == []
    updates = [fact["update"] for fact in noted(tmp_path / "a").values() if "update" in fact]
    assert bool(updates) == (kind is not Closure)
    assert all(update.keys() == {"equal"} for update in updates)


def test_an_optimizer_that_calls_hooks_is_not_repeated(tmp_path):
    training = Training()
    training.optimizer.register_step_pre_hook(
        lambda *_: clip_grad_norm_(training.model.parameters(), 0.01) and None
    )
    training.run(tmp_path / "a")
    assert {"update" in fact for fact in noted(tmp_path / "a").values()} == {False}
    assert findings(tmp_path / "a") == []


def test_what_is_stored_is_compared_even_if_the_model_is_compiled(tmp_path):
    training = Training(lambda: torch.compile(plain(), backend="eager"))
    training.between = lambda step: step == AT and flip(training.model._orig_mod[2].weight, 40)
    training.run(tmp_path / "a")
    assert [(each.since, each.value) for each in findings(tmp_path / "a")] == [(AT, 1)]


def test_no_more_is_copied_than_fits(tmp_path, monkeypatch):
    """The second layer's weights are the largest tensor, of 2,048 bytes."""
    monkeypatch.setattr(stored_copies, "MOST_BYTES", 2047)
    training = Training()
    training.between = lambda step: step == AT and flip(training.model[2].weight, 77)
    training.run(tmp_path / "a")
    assert [fact["stored_weights"] for fact in noted(tmp_path / "a").values()] == [{"equal": 5}] * len(
        CHECKED
    )
    assert findings(tmp_path / "a") == []


def test_copies_are_kept_for_a_step_that_is_computed_twice_alone(tmp_path, monkeypatch):
    kept = []
    keep = Stored.keep
    training = Training()
    monkeypatch.setattr(Stored, "keep", lambda *of: kept.append(training.step) or keep(*of))
    training.run(tmp_path / "a", steps=32)
    assert kept == [step - 1 for step in (*CHECKED, 30)]


EQUAL, CHANGED = {"equal": 2}, {"first": "a", "form": "bit"}


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (EQUAL, EQUAL, {"equal": 4}),
        (EQUAL, CHANGED, CHANGED),
        (CHANGED, EQUAL, CHANGED),
        (CHANGED, {**CHANGED, "first": "b"}, CHANGED),
        ("the model is compiled", "the model is scripted", "the model is compiled"),
    ],
)
def test_what_was_found_of_two_optimizers_is_put_together(first, second, both):
    assert together({"update": EQUAL, "stored_weights": first}, {"stored_weights": second}) == {
        "update": EQUAL,
        "stored_weights": both,
    }
