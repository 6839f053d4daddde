"""Large tensors are measured where they lie, and one that comes again as it was is measured once."""

import numpy as np
import pytest
import torch

from smdebug.numbers.rows import COLUMNS, SAMPLE_SIZE, sample_of
from smdebug.pytorch.tensors.measurer import TorchMeasurer
from smdebug.pytorch.tensors.rows import measure
from smdebug.saving.arrays.measurer import SMALL

LARGE = 2 * SMALL


@pytest.fixture
def measurer():
    return TorchMeasurer()


def numbers(measured):
    return dict(zip(COLUMNS, measured.numbers, strict=False))


def test_what_a_container_returns_of_its_last_layer_is_measured_once(measurer):
    output = torch.randn(LARGE, requires_grad=True) * 2
    first = measurer.measure_again(output, digest=False)
    assert measurer.measure_again(output, digest=False) is first
    assert numbers(first)["mean"] == pytest.approx(float(output.mean()), rel=1e-5)
    np.testing.assert_array_equal(first.sample, sample_of(output.detach().numpy(), SAMPLE_SIZE))


@pytest.mark.parametrize("change", [torch.Tensor.relu_, lambda tensor: tensor.add_(3)])
def test_one_that_was_changed_in_between_is_measured_again(measurer, change):
    output = torch.randn(LARGE)
    measurer.measure_again(output, digest=False)
    change(output)
    found = measurer.measure_again(output, digest=False)
    assert numbers(found)["mean"] == pytest.approx(float(output.mean()), rel=1e-5)


def test_another_tensor_is_measured_even_where_the_first_one_was(measurer):
    values = torch.randn(2 * LARGE)
    first_half, second_half = values[:LARGE], values[LARGE:]
    first, second = (measurer.measure_again(each, digest=False) for each in (first_half, second_half))
    assert first is not second
    assert numbers(second)["mean"] == pytest.approx(float(second_half.mean()), rel=1e-4)


def test_a_digest_that_is_wanted_too_is_computed(measurer):
    output = torch.randn(LARGE)
    assert measurer.measure_again(output, digest=False).digest is None
    assert measurer.measure_again(output, digest=True).digest is not None


def test_a_tensor_that_counts_no_changes_is_always_measured(measurer):
    with torch.inference_mode():
        output = torch.zeros(LARGE)
        measurer.measure_again(output, digest=False)
        output += 1
        assert numbers(measurer.measure_again(output, digest=False))["mean"] == 1


def test_nothing_is_kept_over_steps(measurer):
    output = torch.randn(LARGE)
    first = measurer.measure_again(output, digest=False)
    measurer.end_step()
    assert measurer.measure_again(output, digest=False) is not first


@pytest.mark.parametrize("stored", ["whole", "transposed", "strided"])
def test_the_sample_is_that_of_the_values_in_their_order(stored):
    matrix = torch.arange(2.0 * LARGE).view(64, -1)
    values = {"whole": matrix, "transposed": matrix.T, "strided": matrix[:, ::2]}[stored]
    found = measure(values)
    np.testing.assert_array_equal(found.sample, sample_of(np.ascontiguousarray(values), SAMPLE_SIZE))
    values += 1  # it is a copy
    assert found.sample[0] == 0
