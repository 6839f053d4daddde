"""What is noted of a model beside the trained one that drops values."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug import modes
from smdebug.trials import create_trial


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(8, 12), nn.Dropout(0.25), nn.Linear(12, 3)

    def forward(self, rows):
        return self.last(self.drop(self.drop(self.first(rows)).relu()))


def taught(place, teacher, draws=1, follows=False, student=None):
    """Teach for four steps; return what is noted of the teacher at each."""
    torch.manual_seed(0)
    student = student or nn.Linear(8, 3)
    optimizer = torch.optim.SGD(student.parameters(), 0.1)
    with smdebug.start(str(place)):
        for _ in range(4):
            rows = torch.randn(6, 8)
            output = student(rows)
            with torch.no_grad():
                wanted = torch.stack([teacher(rows) for _ in range(draws)]).mean(0)
            optimizer.zero_grad()
            F.mse_loss(output, wanted).backward()
            optimizer.step()
            if follows:
                with torch.no_grad():
                    for parameter in teacher.parameters():
                        parameter.mul_(0.9)
    trial = create_trial(str(place))
    return [trial.facts(step).get("teacher") for step in trial.steps(mode=modes.TRAIN)]


def test_a_teacher_in_training_mode_is_noted_with_its_dropout(tmp_path):
    noted = taught(tmp_path / "run", Teacher())
    values = {each.pop("values") for each in noted}
    assert len(values) == 1
    assert (
        noted
        == [
            {
                "model": "Teacher",
                "module": "drop",
                "rate": 0.25,
                "shape": [6, 8],
                "is_copy": False,
                "calls": 1,  # a module that is used twice in a call is one
            }
        ]
        * 4
    )


def test_a_teacher_in_evaluation_mode_is_not_noted(tmp_path):
    assert taught(tmp_path / "run", Teacher().eval()) == [None] * 4


def test_how_often_it_was_called_is_noted(tmp_path):
    assert [each["calls"] for each in taught(tmp_path / "run", Teacher(), draws=3)] == [3] * 4


def test_values_that_move_are_noted(tmp_path):
    noted = taught(tmp_path / "run", Teacher(), follows=True)
    assert len({each["values"] for each in noted}) == 4


def test_a_copy_of_the_trained_model_is_noted_as_one(tmp_path):
    student = Teacher()
    noted = taught(tmp_path / "run", copy.deepcopy(student), student=student)
    assert [each["is_copy"] for each in noted] == [True] * 4


def test_the_dropout_of_the_trained_model_is_its_own(tmp_path):
    teacher = nn.Sequential(nn.Linear(8, 3))
    assert taught(tmp_path / "run", teacher, student=Teacher()) == [None] * 4


def test_dropout_without_parameters_is_no_model(tmp_path):
    noise = nn.Dropout(0.2)
    assert taught(tmp_path / "run", lambda rows: noise(rows)[:, :3]) == [None] * 4


class Dropping(nn.Module):
    """Drops values with modules, and with a function in a block."""

    def __init__(self, *rates, of_function=0.0, of_inputs=0.0):
        super().__init__()
        self.first, self.last = nn.Linear(8, 12), nn.Linear(12, 3)
        self.drops = nn.Sequential(*(nn.Dropout(rate) for rate in rates))
        self.block, self.of_inputs = Block(of_function), of_inputs

    def forward(self, rows):
        values = self.first(F.dropout(rows, self.of_inputs, self.training)).relu()
        return self.last(self.block(self.drops(values)))


class Block(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, values):
        return F.dropout(values, self.rate, self.training)


@pytest.mark.parametrize(
    ("model", "noted"),
    [
        (lambda: Dropping(0.5, 0.9), {"module": "drops.1", "rate": 0.9}),
        (lambda: Dropping(0.9, 0.95, 0.86), {"module": "drops.1", "rate": 0.95}),
        (lambda: Dropping(0.86, of_function=0.9), {"module": "block", "rate": 0.9}),
        (lambda: Dropping(0.84), None),
        (lambda: Dropping(of_inputs=0.9), None),  # which masks the batch
    ],
)
def test_a_module_that_drops_nearly_all_values_is_noted(tmp_path, model, noted):
    torch.manual_seed(0)
    model = model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(str(tmp_path / "run")):
        for _ in range(2):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(6, 8)), torch.arange(6) % 3).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(torch.randn(6, 8)), torch.arange(6) % 3)
    trial = create_trial(str(tmp_path / "run"))
    facts = [trial.facts(step, modes.TRAIN) for step in trial.steps(mode=modes.TRAIN)]
    assert [each.get("strong_dropout") for each in facts] == [noted] * 2
    assert "strong_dropout" not in trial.facts(trial.steps(mode=modes.EVAL)[0], modes.EVAL)


def test_what_another_model_drops_is_not_that_of_the_trained_one(tmp_path):
    student, other = nn.Linear(8, 3), Dropping(0.9)
    optimizer = torch.optim.SGD(student.parameters(), 0.1)
    with smdebug.start(str(tmp_path / "run")):
        for _ in range(2):
            rows = torch.randn(6, 8)
            optimizer.zero_grad()
            output = student(rows)
            F.mse_loss(output, other(rows).detach()).backward()
            optimizer.step()
    trial = create_trial(str(tmp_path / "run"))
    facts = [trial.facts(step) for step in trial.steps(mode=modes.TRAIN)]
    assert [("teacher" in each, "strong_dropout" in each) for each in facts] == [(True, False)] * 2


@pytest.mark.parametrize(("is_averaged", "noted"), [(True, None), (False, 0.25)])
def test_a_model_in_training_mode_may_drop_values_during_an_evaluation(tmp_path, is_averaged, noted):
    """As that whose batch statistics are made anew of averaged weights, after the model was evaluated."""
    model, rows = Teacher(), torch.randn(6, 8)
    averaged = copy.deepcopy(model).train(is_averaged)
    averaged.drop.train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(str(tmp_path / "run")):
        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(rows)
            averaged(rows)
    trial = create_trial(str(tmp_path / "run"))
    (step,) = trial.steps(mode=modes.EVAL)
    assert trial.facts(step, modes.EVAL).get("dropout_in_evaluation") == noted
