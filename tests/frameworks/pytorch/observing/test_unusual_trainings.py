"""What the default plan sees of unusual trainings: accumulation, master copies, graphs, modes."""

import logging

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

import smdebug
import smdebug.pytorch
from smdebug import modes
from smdebug.logger import get_logger
from smdebug.pytorch import adapter
from smdebug.pytorch.observing.accumulation import Accumulation
from smdebug.trials import create_trial
from tests.frameworks.pytorch.training import since

KINDS = {"parameters", "gradients", "updates"}


def loss_of(model):
    return F.cross_entropy(model(torch.randn(3, 4)).float(), torch.tensor([0, 1, 1]))


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "run")


@pytest.fixture
def logged():
    handler, messages = logging.Handler(), []
    handler.emit = lambda record: messages.append(record.getMessage())
    get_logger().addHandler(handler)
    yield messages
    get_logger().removeHandler(handler)


def facts_of(trial, mode=modes.TRAIN):
    """The facts of each step that was saved for more than its series."""
    steps = trial.tensor("smdebug/facts").steps(mode)
    return {step: trial.facts(step, mode) for step in steps}


def accumulate(place, groups, *closure):
    with smdebug.pytorch.Hook(place) as hook:  # of which each forward is a step
        model = nn.Linear(4, 2)
        hook.register_module(model)
        hook.set_mode(modes.TRAIN)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for batches in groups:
            for _ in range(batches):
                loss_of(model).backward()
            optimizer.step(*closure)
            optimizer.zero_grad()
    return create_trial(place)


@pytest.mark.parametrize("closure", [(), (None,)], ids=["alone", "no closure, as accelerate says it"])
def test_saved_steps_update_parameters_where_gradients_are_accumulated(place, closure):
    facts = facts_of(accumulate(place, [4] * 12, *closure))
    later = [step for step in facts if step > 9]
    assert later == [11, 23, 31, 43]  # for 10, 20, 30 and 40
    assert all(facts[step]["optimizer_steps"] for step in later)
    assert all(facts[step]["backward_passes"] == 4 for step in later)
    assert "optimizer_steps" not in facts[8]


def test_a_rhythm_that_ends_delays_a_step_and_loses_none(place):
    facts = facts_of(accumulate(place, [8, 8, 8, 8, *[1] * 20]))
    assert len([step for step in facts if step > 9]) == 5
    assert facts[max(facts)]["optimizer_steps"]


def test_an_update_that_does_not_come_is_waited_for_no_longer_than_two_groups():
    accumulation = Accumulation()
    for step in (3, 7):
        accumulation.updated(step)
    placed = {step: accumulation.placed(int(step == 10), step, is_next_due=False) for step in (10, 11)}
    assert placed == {10: 0, 11: 1}
    accumulation = Accumulation()
    for step in (0, 100):
        accumulation.updated(step)
    saved = [
        step for step in range(110, 400) if accumulation.placed(int(step == 110), step, is_next_due=False)
    ]
    assert saved == [200]


def test_two_optimizers_have_no_common_rhythm(place):
    with smdebug.pytorch.Hook(place) as hook:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        hook.register_module(model)
        hook.set_mode(modes.TRAIN)
        optimizers = [torch.optim.SGD(layer.parameters(), 0.1) for layer in model]
        for step in range(25):
            loss_of(model).backward()
            optimizers[step % 2].step()
    assert 20 in facts_of(create_trial(place))


def test_a_training_that_forgot_train_is_one_and_the_log_says_so(place, logged):
    with smdebug.start(place):
        model = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model.eval()
        for _ in range(15):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            with torch.no_grad():
                loss_of(model)
        model.train()
        loss_of(model)
        model.eval()
        loss_of(model)
    trial = create_trial(place)
    facts = facts_of(trial)
    assert len(facts) > 10
    assert not facts[3]["training"]
    assert not KINDS.difference(trial.statistics(3, modes.TRAIN).kinds)
    assert len([message for message in logged if "Call model.train()" in message]) == 1


def test_a_model_whose_optimizer_owns_copies_is_recorded(place):
    with smdebug.start(place):
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).bfloat16()
        masters = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
        optimizer = torch.optim.SGD(masters, 0.1)
        for _ in range(12):
            model.zero_grad()
            F.cross_entropy(model(torch.randn(3, 4).bfloat16()).float(), torch.tensor([0, 1, 1])).backward()
            for master, parameter in zip(masters, model.parameters(), strict=True):
                master.grad = parameter.grad.float()
            optimizer.step()
            with torch.no_grad():
                for master, parameter in zip(masters, model.parameters(), strict=True):
                    parameter.copy_(master)
    trial = create_trial(place)
    assert len(trial.series("loss")) == 12
    statistics = trial.statistics(5, modes.TRAIN)
    assert not KINDS.difference(statistics.kinds)
    assert statistics.row("update/Sequential_0.weight")["rms"] > 0


def test_a_model_of_the_size_of_no_optimizer_is_not_taken_for_trained(place):
    with smdebug.start(place):
        extractor, image = nn.Linear(4, 2), torch.randn(3, 4, requires_grad=True)
        optimizer = torch.optim.SGD([image], 0.1)
        for _ in range(3):
            extractor(image).sum().backward()
            optimizer.step()
    assert not create_trial_or_none(place)


def create_trial_or_none(place):
    from pathlib import Path

    return create_trial(place) if Path(place).exists() else None


@since("2.6", "graphs that contain what watches modules")
@pytest.mark.parametrize("whole_step", [False, True])
def test_a_model_compiled_with_its_loss_shows_parameters_and_updates(place, logged, whole_step):
    torch._dynamo.reset()
    torch.manual_seed(0)  # of some models all ReLUs are dead from the beginning
    inputs, labels = torch.randn(3, 4), torch.tensor([0, 1, 1])
    with smdebug.start(place):
        model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def loss():
            return F.cross_entropy(model(inputs), labels)

        def step(loss):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

        compiled = torch.compile(step if whole_step else loss, backend="eager")
        for _ in range(12):
            compiled(loss) if whole_step else step(compiled)
    trial = create_trial(place)
    assert len(trial.series("loss")) == 12
    statistics = trial.statistics(5, modes.TRAIN)
    assert set(statistics.kinds) == (KINDS - {"gradients"} if whole_step else KINDS)
    assert statistics.row("update/Sequential_0.weight")["rms"] > 0
    assert len([message for message in logged if "inside a compiled graph" in message]) == 1
    unseen = [message for message in logged if "Gradients of Sequential are not saved" in message]
    assert len(unseen) == whole_step


def trained(model, call=None, steps=12):
    """Train a model, called by `call`, and return it."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(call or model).backward()
        optimizer.step()
    return model


def small_model():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def test_a_model_whose_forward_is_recomputed_in_the_backward_pass_is_trained(place, logged):
    with smdebug.start(place):
        model = small_model()
        trained(model, lambda x: checkpoint(model, x.requires_grad_(), use_reentrant=True), steps=12)
        with torch.no_grad():
            model.eval()(torch.randn(3, 4))
    trial = create_trial(place)
    assert trial.steps(modes.EVAL) == [0, 1]  # what the first one is, its backward pass shows
    assert trial.steps(modes.TRAIN) == list(range(11))
    assert not (KINDS | {"outputs"}).difference(trial.statistics(5, modes.TRAIN).kinds)
    assert not [message for message in logged if "Call model.train()" in message]


def test_a_model_that_is_called_by_vmap_shows_what_has_values(place, logged):
    with smdebug.start(place):
        model = small_model()
        trained(model, torch.vmap(model))
    trial = create_trial(place)
    assert len(trial.series("loss")) == 12
    assert set(trial.statistics(5, modes.TRAIN).kinds) == KINDS
    assert len([message for message in logged if "torch.vmap" in message]) == 1


def test_a_model_with_another_optimizer_and_other_parameters_stays_the_same(place, logged):
    with smdebug.start(place):
        model = trained(small_model(), steps=5)
        prune.l1_unstructured(model[0], "weight", amount=0.5)
        trained(model, steps=8)
    trial = create_trial(place)
    assert len(trial.series("loss")) == 13
    assert "update/Sequential_0.weight_orig" in trial.statistics(8, modes.TRAIN).names
    assert not [message for message in logged if "registered" in message]


@since("2.6", "graphs that contain what watches modules")
@pytest.mark.filterwarnings("error")
def test_compiling_a_model_warns_of_nothing_that_watching_it_does(place):
    with smdebug.start(place):
        model = small_model()
        trained(model, torch.compile(model, backend="eager"))
    assert len(create_trial(place).series("loss")) == 12


def test_without_a_number_to_begin_with_it_is_reported_what_to_do(place, logged):
    with smdebug.start(place):
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            model(torch.randn(3, 4)).backward(torch.ones(3, 2))
            optimizer.step()
    (warning,) = [message for message in logged if "No loss was seen" in message]
    assert "Call backward on one number" in warning
    with smdebug.start(place + "-recorded"):
        loss = small_model()(torch.randn(3, 4)).sum()
        model(torch.randn(3, 4)).backward(torch.ones(3, 2))
        smdebug.pytorch.get_hook().record_tensor_value("loss", loss)  # as the message says
        optimizer.step()
    assert len([message for message in logged if "No loss was seen" in message]) == 1


def test_large_and_small_tensors_are_in_the_order_of_the_network(place):
    with smdebug.start(place):
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3000), nn.ReLU(), nn.Linear(3000, 2))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    statistics = create_trial(place).statistics(2, modes.TRAIN)
    names = [f"Sequential_{name}" for name, _ in model.named_parameters()]
    assert statistics.of("parameters").names == names
    assert statistics.of("gradients").names == [f"gradient/{name}" for name in names]
    assert statistics.of("updates").names == [f"update/{name}" for name in names]
    sizes = [parameter.numel() for parameter in model.parameters()]
    assert statistics.of("parameters").column("count").tolist() == sizes


def embedded(place, *, sparse, rows=40):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(rows, 3, sparse=sparse), nn.Linear(3, 2))
    with smdebug.pytorch.Hook(place) as hook:
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            model(torch.tensor([1, 1, 7])).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return create_trial(place)


def test_the_gradient_of_a_sparse_embedding_is_measured_with_its_zeros(place, logged):
    dense, sparse = (embedded(f"{place}-{kind}", sparse=kind == "sparse") for kind in ("dense", "sparse"))
    for step in range(3):
        row = sparse.statistics(step, kind="gradients").row("gradient/Sequential_0.weight")
        assert (row["count"], row["zeros"]) == (120, 114)
        assert row == dense.statistics(step, kind="gradients").row("gradient/Sequential_0.weight")
    assert not [message for message in logged if "not measured" in message]


def test_a_sparse_gradient_that_would_fill_the_memory_is_left_out_with_a_word(place, logged, monkeypatch):
    monkeypatch.setattr(adapter, "MOST_WRITTEN_OUT", 400)
    names = embedded(place, sparse=True).statistics(0, kind="gradients").names
    assert names == ["gradient/Sequential_1.weight", "gradient/Sequential_1.bias"]
    (warning,) = [message for message in logged if "not measured" in message]
    assert "gradient/Sequential_0.weight" in warning
    assert "would take more than 64 MB" in warning
