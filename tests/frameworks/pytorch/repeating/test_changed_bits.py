"""Changes that memory alone makes, and those that a program may have made as well."""

import math

import pytest
import torch

from smdebug.pytorch.repeating.changed_bits import LEAST_RUN, form_of_change

WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}
SHAPE = (8, 32)


def form(change, *, before=None, dtype=torch.float32):
    """The form of what this changes in a matrix."""
    if before is None:
        before = torch.randn(SHAPE, generator=torch.Generator().manual_seed(0))
    before = before.to(dtype)
    after = before.clone()
    change(after)
    bits = [each.reshape(-1).view(WHOLE[each.element_size()]) for each in (before, after)]
    return form_of_change(*bits, dtype, SHAPE[0])


def flipped(place, bit):
    def change(values):
        flat = values.view(-1).view(WHOLE[values.element_size()])
        flat[place] ^= 1 << bit

    return change


def written(value, *place):
    def change(values):
        values[place] = value

    return change


def run(first, last, factor=3.0):
    def change(values):
        values.view(-1)[first:last] *= factor

    return change


@pytest.mark.parametrize(
    ("dtype", "bit"),
    [
        (torch.float32, 0),
        (torch.float32, 30),
        (torch.float16, 14),
        (torch.bfloat16, 3),
        (torch.float64, 62),
    ],
)
def test_one_bit_is_found_in_numbers_of_each_width(dtype, bit):
    found = form(flipped(45, bit), dtype=dtype)
    assert (found["form"], found["values"], found["size"]) == ("bit", 1, 256)
    assert found["before"] != found["after"]


def test_a_sign_that_flips_is_found_beside_values_of_both_signs():
    assert form(flipped(45, 31))["form"] == "bit"
    assert form(flipped(45, -1 + 32), before=torch.rand(SHAPE) - 1)["form"] == "bit"


def test_a_bit_that_makes_no_number_is_found():
    ones = torch.ones(SHAPE)
    found = form(flipped(45, 30), before=ones + ones / 2)
    assert found["form"] == "bit"
    assert math.isnan(found["after"])


ONE_LARGE = torch.full(SHAPE, 0.5)
ONE_LARGE[3, 4] = 1.0


@pytest.mark.parametrize(
    ("change", "before"),
    [
        (written(0.7, 3, 4), None),
        (lambda values: values.clamp_(max=0.5), ONE_LARGE),
        (lambda values: values.clamp_(min=-0.5), -ONE_LARGE),
        (lambda values: values.abs_(), torch.where(ONE_LARGE == 1, -ONE_LARGE, ONE_LARGE)),
        (lambda values: values.add_(0), torch.where(ONE_LARGE == 1, -0.0, ONE_LARGE)),
        (written(0.0, 3, 4), ONE_LARGE * 2),
        (lambda values: values.mul_(0.5), torch.where(ONE_LARGE == 1, ONE_LARGE, 0.0)),
    ],
    ids=["another value", "largest", "least", "magnitude", "negative zero", "pruned", "only one not zero"],
)
def test_one_value_that_a_program_may_have_changed_has_another_form(change, before):
    found = form(change, before=before)
    assert (found["form"], found["values"]) == ("other", 1)


@pytest.mark.parametrize(("first", "last"), [(37, 70), (32, 70), (37, 96), (0, 33), (200, 256)])
def test_a_run_that_begins_or_ends_within_a_row_is_found(first, last):
    found = form(run(first, last))
    assert (found["form"], found["place"], found["values"]) == ("run", first, last - first)


@pytest.mark.parametrize(
    "change",
    [
        run(32, 96),
        run(0, 256),
        run(33, 60),
        run(60, 60 + LEAST_RUN - 1),
        lambda values: values[:, 3:].mul_(2),
        lambda values: values[2:5, 3:20].mul_(2),
        lambda values: values.clamp_(-0.1, 0.1),
        lambda values: values.tril_(),
    ],
    ids=["rows", "all", "part of a row", "a few", "columns", "a block", "clipped", "triangle"],
)
def test_values_that_a_program_may_have_changed_have_another_form(change):
    assert form(change)["form"] == "other"


def test_rows_whose_ends_were_zeros_are_whole_rows():
    before = torch.randn(SHAPE)
    before[:, :4] = 0
    assert form(run(32, 96), before=before)["form"] == "other"
    assert form(run(37, 96), before=before)["form"] == "run"


def test_numbers_of_other_kinds_have_no_form():
    before = torch.arange(256, dtype=torch.int32)
    after = before.clone()
    after[7] ^= 1 << 20
    assert form_of_change(before, after, torch.int32, 8) == {"form": "other", "values": 1, "size": 256}
