"""A step is one iteration of the training as a person counts them, however often it calls the model."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug import SaveConfig, modes
from smdebug.pytorch.observing.iterations import Iterations
from smdebug.saving.recording import recorder
from smdebug.trials import create_trial

ITERATIONS = 24


def numbered(events, optimizers=1, *, is_updating=False):
    """Return the iteration of each forward F; B is a backward pass, R one after a reset, 0 and 1 updates."""
    iterations, number, found = Iterations(lambda: optimizers), -1, []
    for event in events:
        if event == "F":
            number += iterations.begins(lambda: is_updating)
            found.append(number)
        elif event in "BR":
            iterations.passed(lambda event=event: event == "R")
        else:
            iterations.updated(int(event))
    return found


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ("FB0" * 3, [0, 1, 2]),
        ("FFB0" * 3, [0, 0, 1, 1, 2, 2]),
        ("FBFBFB0" * 2, [0, 0, 0, 1, 1, 1]),
        ("FBFR0" * 3, [0, 0, 1, 1, 2, 2]),
        ("F" * 9 + "B0" + "F", [0] * 9 + [1]),
    ],
    ids=["plain", "pairs", "accumulation", "perturbed weights", "an episode"],
)
def test_an_iteration_ends_with_its_update(events, found):
    assert numbered(events) == found


def test_optimizers_that_take_turns_have_one_each_in_an_iteration():
    assert numbered("FBFB0FB1" * 3, 2) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    # Five turns of a critic are five iterations, the first of which the generator shares.
    assert numbered("FB0FB0FB0FB0FB0FB1" * 3, 2)[-6:] == [9, 10, 11, 12, 13, 14]


def test_a_second_optimizer_that_never_steps_costs_one_iteration():
    assert numbered("FB0" * 5, 2) == [0, 0, 1, 2, 3]


def test_a_training_without_updates_is_counted_by_its_backward_passes():
    assert numbered("FR" * 6) == [0, 0, 1, 2, 3, 4]
    assert numbered("FB" * 40)[-1] == 8
    assert numbered("FB0" * 3 + "FB" * 80)[-1] == 19


def test_an_optimizer_that_calls_the_model_itself_needs_one_iteration_however_often():
    assert numbered("FR" * 20 + "0F", is_updating=True) == [0] * 20 + [1]


def net(outputs=2):
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.1), nn.Linear(6, outputs))


def batch():
    inputs = torch.randn(8, 4)
    return inputs, (inputs.sum(1) > 0).long()


def plain(model, optimizer, **kwargs):
    for _ in range(ITERATIONS):
        inputs, labels = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        yield inputs, labels


def siamese(model, optimizer):
    for _ in range(ITERATIONS):
        inputs, _ = batch()
        optimizer.zero_grad()
        ((model(inputs) - model(inputs + 0.1)) ** 2).mean().backward()
        optimizer.step()


def preferences(model, optimizer):
    reference = copy.deepcopy(model).eval()
    for _ in range(ITERATIONS):
        inputs, _ = batch()
        chosen, rejected = model(inputs), model(inputs.flip(0))
        with torch.no_grad():
            model(inputs)  # as with adapters that are switched off
            margin = reference(inputs) - reference(inputs.flip(0))
        optimizer.zero_grad()
        (-F.logsigmoid(chosen - rejected - margin)).mean().backward()
        optimizer.step()


def perturbed(model, optimizer):
    for _ in range(ITERATIONS):
        inputs, labels = batch()
        F.cross_entropy(model(inputs), labels).backward()
        kept = [parameter.detach().clone() for parameter in model.parameters()]
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 5 * parameter.grad
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        with torch.no_grad():
            for parameter, before in zip(model.parameters(), kept, strict=True):
                parameter.copy_(before)
        optimizer.step()
        optimizer.zero_grad()


def accumulated(model, optimizer):
    for _ in range(ITERATIONS):
        for _ in range(4):
            inputs, labels = batch()
            F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


def with_closure(model, optimizer):
    for _ in range(ITERATIONS):
        inputs, labels = batch()

        def closure(inputs=inputs, labels=labels):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            return loss

        optimizer.step(closure)


def trained(place, train, make=torch.optim.SGD):
    torch.manual_seed(0)
    with smdebug.start(place):
        model = net()
        for _ in train(model, make(model.parameters(), 0.1)) or ():
            pass
    return create_trial(place)


@pytest.mark.parametrize("train", [siamese, preferences, perturbed, accumulated, plain])
def test_each_iteration_is_one_step(tmp_path, train):
    trial = trained(str(tmp_path / "run"), train)
    assert trial.steps() == trial.steps(modes.TRAIN) == [*range(10), 10, 20, ITERATIONS - 1]
    assert list(trial.series("loss").steps) == list(range(ITERATIONS))
    gradients = [trial.statistics(step, modes.TRAIN).of("gradients").names for step in (3, 20)]
    assert all(len(rows) for rows in gradients)


def test_lbfgs_computes_a_step_of_many_passes(tmp_path):
    trial = trained(str(tmp_path / "run"), with_closure, torch.optim.LBFGS)
    assert list(trial.series("loss").steps) == list(range(ITERATIONS))
    assert trial.facts(10, modes.TRAIN)["backward_passes"] > 1


def test_the_passes_of_a_closure_are_those_of_its_own_step(tmp_path):
    trial = trained(str(tmp_path / "run"), with_closure)
    saved = [trial.facts(step, modes.TRAIN) for step in (0, 5, 10, 20)]
    assert [facts["backward_passes"] for facts in saved] == [1, 1, 1, 1]
    assert [facts["optimizer_steps"] for facts in saved] == [True] * 4
    # Nobody knows what a closure has reset, and when.
    assert [facts["gradients_were_reset"] for facts in saved] == [None] * 4


def test_the_loss_at_perturbed_weights_is_not_the_loss_of_the_step(tmp_path):
    trial = trained(str(tmp_path / "run"), perturbed)
    assert trial.series("loss").values.max() < 1.5


def test_optimizers_of_a_gan_take_turns_within_a_step(tmp_path):
    place = str(tmp_path / "run")
    with smdebug.start(place):
        critic, generator = net(1), net(4)
        optimizers = [torch.optim.Adam(model.parameters(), 1e-3) for model in (critic, generator)]
        for _ in range(ITERATIONS):
            false = generator(torch.randn(8, 4))
            optimizers[0].zero_grad()
            (critic(false.detach()).mean() - critic(batch()[0]).mean()).backward()
            optimizers[0].step()
            optimizers[1].zero_grad()
            (-critic(false).mean()).backward()
            optimizers[1].step()
    trial = create_trial(place)
    assert trial.steps() == [*range(10), 10, 20, ITERATIONS - 1]


def test_accuracy_without_gradients_is_no_step_of_the_training(tmp_path):
    def train(model, optimizer):
        for inputs, labels in plain(model, optimizer):
            with torch.no_grad():
                (model(inputs).argmax(1) == labels).float().mean()
            yield

    trial = trained(str(tmp_path / "run"), train)
    assert list(trial.series("loss").steps) == list(range(ITERATIONS))
    trained_at = [trial.global_step(modes.TRAIN, step) for step in trial.steps(modes.TRAIN)]
    assert trained_at == trial.steps(modes.TRAIN)
    assert {0, 2, 4, 10, 20} <= set(trained_at)
    assert trial.steps()[-1] <= ITERATIONS


@pytest.mark.parametrize("in_evaluation_mode", [True, False])
def test_an_evaluation_is_saved_as_the_training_step_it_follows(tmp_path, in_evaluation_mode):
    def train(model, optimizer):
        for _ in range(3):
            yield from plain(model, optimizer)
            model.train(not in_evaluation_mode)
            with torch.no_grad():
                for _ in range(5):
                    F.cross_entropy(model(batch()[0]), batch()[1])
            model.train()

    trial = trained(str(tmp_path / "run"), train)
    ends = [ITERATIONS * (epoch + 1) - 1 for epoch in range(3)]
    assert [trial.global_step(modes.EVAL, step) for step in trial.steps(modes.EVAL)] == ends
    assert [trial.mode(step) for step in ends] == [modes.EVAL] * 3
    assert one_index_file_each(tmp_path / "run") == trial.steps()
    losses = trial.series("loss")
    assert list(losses.of(modes.TRAIN).steps) == list(range(3 * ITERATIONS))
    assert list(losses.of(modes.EVAL).steps) == ends
    assert [trial.facts(step)["training"] for step in (ends[0], 20)] == [not in_evaluation_mode, True]


def generate(model, inputs):
    with torch.no_grad():
        for _ in range(8):
            inputs = model(inputs).repeat(1, 2)


class Trainer:
    def __init__(self, model):
        self.model = model

    def training_step(self):
        with torch.no_grad():
            self.model(batch()[0])  # what the old policy says of the batch
        inputs, labels = batch()
        F.cross_entropy(self.model(inputs), labels).backward()


@pytest.mark.parametrize("in_evaluation_mode", [True, False])
@pytest.mark.parametrize("comes_first", [True, False])
def test_generation_between_updates_is_no_step(tmp_path, in_evaluation_mode, comes_first):
    def train(model, optimizer):
        for _ in range(ITERATIONS):
            for part in ("generate", "train") if comes_first else ("train", "generate"):
                if part == "generate":
                    model.train(not in_evaluation_mode)
                    generate(model, batch()[0])
                    model.train()
                    continue
                optimizer.zero_grad()
                Trainer(model).training_step()
                optimizer.step()
            yield

    trial = trained(str(tmp_path / "run"), train)
    assert trial.steps() == trial.steps(modes.TRAIN) == [*range(10), 10, 20, ITERATIONS - 1]
    assert list(trial.series("loss").steps) == list(range(ITERATIONS))
    names = [trial.statistics(step, modes.TRAIN).of("outputs").names for step in (0, 3, 20)]
    assert names == [names[0]] * 3
    assert not [name for name in names[0] if not name.endswith("_output_0")]


def test_an_evaluation_between_generations_has_the_number_of_its_training_step(tmp_path):
    def train(model, optimizer):
        for _ in range(3):
            for _ in plain(model, optimizer):
                generate(model, batch()[0])
                yield
            model.eval()
            with torch.no_grad():
                for _ in range(5):
                    F.cross_entropy(model(batch()[0]), batch()[1])
            generate(model, batch()[0])
            model.train()

    trial = trained(str(tmp_path / "run"), train)
    ends = [ITERATIONS * (epoch + 1) - 1 for epoch in range(3)]
    assert [trial.global_step(modes.EVAL, step) for step in trial.steps(modes.EVAL)] == ends
    assert list(trial.series("loss").of(modes.TRAIN).steps) == list(range(3 * ITERATIONS))


def test_values_that_are_written_before_a_step_is_saved_have_numbers_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "CARRIED_SECONDS", 0.0)  # as in an evaluation that takes minutes

    def train(model, optimizer):
        for _ in range(2):
            yield from plain(model, optimizer)
            model.eval()
            with torch.no_grad():
                for _ in range(5):
                    F.cross_entropy(model(batch()[0]), batch()[1])
            model.train()

    trial = trained(str(tmp_path / "run"), train)
    losses = trial.series("loss")
    assert list(losses.of(modes.TRAIN).steps) == list(range(2 * ITERATIONS))
    assert list(losses.of(modes.EVAL).steps) == [ITERATIONS - 1, 2 * ITERATIONS - 1]
    assert len(trial.observations.series_rows("loss")) == 2 * ITERATIONS + 10
    assert one_index_file_each(tmp_path / "run") == trial.steps()


def one_index_file_each(place):
    """Return the steps that have an index file, in order; a step with two appears twice."""
    return sorted(int(path.name.split("_")[0]) for path in (place / "index").rglob("*.json"))


def test_chosen_tensors_keep_a_step_for_each_forward(tmp_path):
    place = str(tmp_path / "run")
    torch.manual_seed(0)
    with smdebug.start(place, include_collections=["weights"], save_config=SaveConfig(save_interval=1)):
        model = net()
        siamese(model, torch.optim.SGD(model.parameters(), 0.1))
    assert len(create_trial(place).steps()) == 2 * ITERATIONS
