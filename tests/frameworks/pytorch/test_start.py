"""`smdebug.start` watches unchanged trainings, and changes none of their results."""

import gc
import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug import modes
from smdebug.trials import create_trial


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))


def data():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(800, 20, generator=generator)
    return inputs, (inputs[:, 0] > 0).long() + 2 * (inputs[:, 1] > 0).long()


def train(model, optimizer=None, epochs=2, **how):
    inputs, labels = data()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(epochs):
        model.train()
        for start in range(0, 800, 50):
            if how.get("resets", True):
                optimizer.zero_grad()
            output = model(inputs[start : start + 50])
            if how.get("softmax"):
                output = output.softmax(1)
            F.cross_entropy(output, labels[start : start + 50]).backward()
            optimizer.step()
        if how.get("evaluates", True):
            model.eval()
            with torch.no_grad():
                for start in range(0, 200, 50):
                    F.cross_entropy(model(inputs[start : start + 50]), labels[start : start + 50])
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "run")


def watched(place, *args, **how):
    with smdebug.start(place):
        train(make_model(), *args, **how)
    return create_trial(place)


def test_a_watched_training_is_the_same_to_the_last_bit(place):
    alone = train(make_model())
    state = torch.get_rng_state()
    with smdebug.start(place):
        seen = train(make_model())
    assert all(torch.equal(a, b) for a, b in zip(alone, seen, strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    again = train(make_model())
    assert all(torch.equal(a, b) for a, b in zip(alone, again, strict=True))


def test_every_loss_is_kept_also_that_of_functions_in_evaluation(place):
    trial = watched(place)
    loss = trial.series("loss")
    assert loss.of(modes.TRAIN).steps.tolist() == list(range(32))
    assert loss.of(modes.EVAL).steps.tolist() == [15, 31]  # each with the mean over its batches
    assert len(trial.observations.series_rows("loss")) == 32 + 8
    assert loss.of(modes.TRAIN).values[-1] < loss.of(modes.TRAIN).values[0]


def test_parameters_gradients_updates_inputs_and_outputs_are_measured(place):
    statistics = watched(place).statistics(10, modes.TRAIN)
    assert set(statistics.kinds) == {"parameters", "gradients", "updates", "inputs", "outputs"}
    assert statistics.of("inputs").names == ["Sequential_input_0"]
    assert "2_output_0" in statistics
    gradient = statistics.row("gradient/Sequential_0.weight")["rms"]
    update = statistics.row("update/Sequential_0.weight")["rms"]
    assert update == pytest.approx(0.1 * gradient, rel=1e-3)


def test_facts_tell_modes_optimizers_the_batch_and_the_loss(place):
    trial = watched(place)
    facts = trial.facts(10, modes.TRAIN)
    assert facts["training"] is facts["gradients"] is facts["gradients_were_reset"] is True
    assert facts["backward_passes"] == 1
    assert facts["shapes"] == [[50, 20]]
    assert facts["distinct_rows"] == 50
    (optimizer,) = facts["optimizers"]
    assert optimizer["class"] == "SGD"
    assert len(optimizer["groups"][0]["parameters"]) == 6
    (term,) = facts["loss"]["terms"]
    assert (term["criterion"], term["given"], term["classes"]) == ("cross entropy", "", 4)
    assert ["1", "BatchNorm1d", True] in facts["modules"]
    assert trial.facts(0, modes.EVAL)["training"] is False


def test_the_rate_that_a_schedule_scales_is_noted_beside_the_one_in_use(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.optim.lr_scheduler.LinearLR(optimizer, 0.01)
    with smdebug.start(place):
        train(model, optimizer)
    trial = create_trial(place)
    assert trial.facts(0, modes.TRAIN)["optimizers"][0]["groups"][0]["asked_rate"] == 0.1
    assert trial.series("learning_rate/0/0").of(modes.TRAIN).values[0] == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("options", "noted"), [({"momentum": 0.9}, 0.9), ({"momentum": 0.9, "dampening": 0.5}, None), ({}, None)]
)
def test_momentum_is_noted_where_it_makes_steps_larger(place, options, noted):
    model = make_model()
    with smdebug.start(place):
        train(model, torch.optim.SGD(model.parameters(), 0.1, **options))
    (optimizer,) = create_trial(place).facts(0, modes.TRAIN)["optimizers"]
    assert optimizer["groups"][0].get("momentum") == noted


def test_no_rate_was_asked_for_without_a_schedule(place):
    (optimizer,) = watched(place).facts(0, modes.TRAIN)["optimizers"]
    assert "asked_rate" not in optimizer["groups"][0]


def test_what_the_moments_of_an_optimizer_have_seen_is_noted_when_it_is_met(place):
    model = make_model()
    first = torch.optim.Adam(model.parameters())
    train(model, first)
    second = torch.optim.Adam(model.parameters())
    second.load_state_dict(first.state_dict())
    noted = []
    for number, optimizer in enumerate((torch.optim.Adam(model.parameters()), second)):
        with smdebug.start(f"{place}/{number}"):
            train(model, optimizer)
        (known,) = create_trial(f"{place}/{number}").facts(0, modes.TRAIN)["optimizers"]
        noted.append(known["updates_before"])
    assert noted == [0, 32]


def test_the_attempt_of_a_resumed_run_is_noted(place, tmp_path, monkeypatch):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(tmp_path / "checkpoints")}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    with smdebug.start(place):
        train(make_model(), epochs=1, evaluates=False)
        (tmp_path / "checkpoints" / "weights").write_text("")
        train(make_model(), epochs=1, evaluates=False)
    with smdebug.start(place, if_finished="resume"):
        train(make_model(), epochs=1, evaluates=False)
    trial = create_trial(place)
    assert [trial.facts(step).get("attempt") for step in (0, 20)] == [None, 1]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_an_optimizer_without_moments_has_seen_nothing(place, momentum):
    model = make_model()
    with smdebug.start(place):
        train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=momentum))
    (optimizer,) = create_trial(place).facts(0, modes.TRAIN)["optimizers"]
    assert optimizer.get("updates_before") == (0 if momentum else None)


def test_gradients_that_nobody_resets_are_noticed(place):
    assert watched(place, resets=False).facts(5, modes.TRAIN)["gradients_were_reset"] is False


def test_a_closure_resets_gradients_within_the_step(place):
    inputs, labels = data()
    model = make_model()
    optimizer = torch.optim.LBFGS(model.parameters(), 0.1, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        return loss

    with smdebug.start(place):
        for _ in range(3):
            optimizer.step(closure)
        train(model, torch.optim.Adam(model.parameters()), epochs=1, evaluates=False)
    trial = create_trial(place)
    steps = trial.steps(modes.TRAIN)[:-1]  # the last one holds losses alone
    found = {trial.facts(step, modes.TRAIN).get("gradients_were_reset") for step in steps}
    assert True in found
    assert False not in found


def test_accumulated_gradients_are_not_gradients_that_were_not_reset(place):
    inputs, labels = data()
    with smdebug.start(place):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(12):
            rows = slice(50 * step, 50 * step + 50)
            (F.cross_entropy(model(inputs[rows]), labels[rows]) / 4).backward()
            if step % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    trial = create_trial(place)
    facts = [trial.facts(step, modes.TRAIN) for step in (0, 1)]
    assert [fact["backward_passes"] for fact in facts] == [4, 4]
    assert [fact["gradients_were_reset"] for fact in facts] == [True, True]
    assert facts[0]["loss"]["factor"] == 0.25
    assert trial.steps() == [0, 1, 2]
    assert trial.series("loss").steps.tolist() == [0, 1, 2]


def test_probabilities_given_to_a_cross_entropy_are_noticed(place):
    (term,) = watched(place, softmax=True).facts(0, modes.TRAIN)["loss"]["terms"]
    assert term["given"] == "softmax"


def test_dropout_in_evaluation_is_noticed(place):
    class Forgetful(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(20, 4)

        def forward(self, inputs):
            return F.dropout(self.layer(inputs), 0.5)

    with smdebug.start(place):
        train(Forgetful())
    trial = create_trial(place)
    assert trial.facts(0, modes.EVAL)["dropout_in_evaluation"] == 0.5
    assert "dropout_in_evaluation" not in trial.facts(0, modes.TRAIN)


def test_a_learning_rate_that_changes_is_a_series(place):
    inputs, labels = data()
    with smdebug.start(place):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(16):
            optimizer.param_groups[0]["lr"] = 0.1 if step < 12 else 0.4
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    rates = create_trial(place).series("learning_rate/0/0")
    assert dict(zip(rates.steps.tolist(), rates.values.tolist(), strict=True))[12] == 0.4
    assert rates.values.tolist().count(0.1) == 11  # at saved steps; in between only changes


def test_several_trainings_have_runs_of_their_own(tmp_path):
    places = [str(tmp_path / name) for name in "ab"]
    for place in places:
        with smdebug.start(place):
            train(make_model())
    assert [len(create_trial(place).series("loss")) for place in places] == [34, 34]


def test_a_second_start_ends_the_run_of_the_first(tmp_path):
    smdebug.start(str(tmp_path / "a"))
    train(make_model())
    with smdebug.start(str(tmp_path / "b")):
        train(make_model())
    assert create_trial(str(tmp_path / "a")).loaded_all_steps


def test_a_model_whose_optimizer_is_older_is_watched(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(place):
        train(model, optimizer)
    assert len(create_trial(place).series("loss")) == 34  # 32 steps, 2 evaluations


def test_nothing_is_watched_after_the_end(place):
    with smdebug.start(place) as watching:
        train(make_model())
    gc.collect()
    train(make_model())
    assert watching.runs == [place]
    assert len(create_trial(place).series("loss")) == 34  # 32 steps, 2 evaluations


def test_a_compiled_model_has_as_many_graphs_as_without(place):
    def count_graphs():
        torch._dynamo.reset()
        counts = []
        compiled = torch.compile(make_model(), backend=counting(counts), fullgraph=True)
        train(compiled, evaluates=False)
        return len(counts)

    def counting(counts):
        def backend(graph, inputs):
            counts.append(graph)
            return graph.forward

        return backend

    alone = count_graphs()
    with smdebug.start(place):
        assert count_graphs() == alone
    statistics = create_trial(place).statistics(5, modes.TRAIN)
    seen = {"parameters", "gradients"}
    if torch.__version__ >= "2.3":  # before, the step of its optimizer is not seen
        seen.add("updates")
    assert seen <= set(statistics.kinds)
