"""What a training calls the number of losses that it divides by."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import smdebug
from smdebug.pytorch.graphs.named_divisor import named_divisor
from smdebug.runs import diagnose

SHARED_ACCUMULATION = 32


def loss():
    return torch.ones(3, requires_grad=True).square().mean()


class Trainer:
    def __init__(self):
        self.settings = SimpleNamespace(grad_accum=16)
        self._kept = 5

    @property
    def accumulated(self):
        return self._kept

    def divides_by_a_field_of_a_field(self):
        return named_divisor(loss() / self.settings.grad_accum)

    def divides_by_a_property(self):
        return named_divisor(loss() / self.accumulated)


def test_a_variable_is_named():
    accumulation_steps = 8
    assert named_divisor(loss() / accumulation_steps) == ("accumulation_steps", 8)


def test_a_factor_that_was_computed_of_it_is_recognised_beside_others():
    accum = 6
    assert named_divisor(0.1 * loss() * (1 / accum)) == ("accum", 6)


def test_a_constant_of_the_module_an_argument_and_an_item_are_named():
    args, config = SimpleNamespace(accum_iter=4), {"gradient_accumulation_steps": 12}
    assert named_divisor(loss() / SHARED_ACCUMULATION).name == "SHARED_ACCUMULATION"
    assert named_divisor(loss() / args.accum_iter) == ("accum_iter", 4)
    assert named_divisor(loss() / config["gradient_accumulation_steps"]).number == 12


def test_fields_and_properties_of_an_object_are_named():
    assert Trainer().divides_by_a_field_of_a_field() == ("grad_accum", 16)
    assert Trainer().divides_by_a_property() == ("accumulated", 5)


def test_a_name_in_the_caller_of_the_function_that_divides_counts():
    def divide(value, number):
        return named_divisor(value / number)

    accumulate = 3
    assert divide(loss(), accumulate) == ("accumulate", 3)


@pytest.mark.parametrize("divided", [lambda: loss() / 7, lambda: loss(), lambda: loss() + loss() / 8])
def test_other_losses_have_none(divided):
    accumulation_steps = 8
    assert accumulation_steps
    assert named_divisor(divided()) is None


@pytest.mark.parametrize(("every", "found"), [(1, True), (4, False)])
def test_a_division_without_an_accumulation_is_found(tmp_path, every, found):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    accumulation_steps = 4
    with smdebug.start(str(tmp_path / "run")):
        for number in range(40):
            wanted = torch.randn(8, 1)
            (torch.nn.functional.mse_loss(model(torch.randn(8, 4)), wanted) / accumulation_steps).backward()
            if (number + 1) % every == 0:
                optimizer.step()
                optimizer.zero_grad()
    titles = [issue.title for issue in diagnose(str(tmp_path / "run")).issues]
    assert ("The loss is divided, but nothing accumulates" in titles) is found
