"""What is computed on the device is what numpy computes of the same values."""

import numpy as np
import pytest
import torch

from smdebug.numbers.digests import content_digest
from smdebug.numbers.rows import MEASURED, matrix_of, sample_of
from smdebug.numbers.rows import measured as measured_by_numpy
from smdebug.pytorch import rows
from smdebug.pytorch.rows import Rows, digests, is_measurable, sampled

TENSORS = {
    "normal": torch.randn(100, 70),
    "one value": torch.tensor(3.5),
    "empty": torch.empty(0, 3),
    "all equal": torch.full((1000,), 0.1),
    "narrow": 1000 + torch.randn(5000) / 1000,
    "half zeros": torch.relu(torch.randn(4000)),
    "zeros": torch.zeros(12),
    "huge": torch.tensor([1e30, -3e38, 2e38]),
    "tiny": torch.tensor([1e-30, -3e-38, 2e-44, 0.0]),
    "some not finite": torch.tensor([1.0, float("nan"), -2.0, float("inf"), 0.0]),
    "none finite": torch.tensor([float("nan"), float("-inf")]),
    "float64": torch.randn(50, dtype=torch.float64) * 1e100,
    "float16": torch.randn(5000).half(),
    "bfloat16": torch.randn(5000).bfloat16(),
    "integers": torch.randint(-5, 50_000, (300,)),
    "bools": torch.rand(33) > 0.5,
    "transposed": torch.randn(30, 20).t(),
    "odd part of another": torch.randn(1000)[1:998],
    "a parameter": torch.nn.Parameter(torch.randn(8, 8)),
    "long": torch.randn(300_001),
}


def as_numpy(tensor):
    values = tensor.detach()
    return (values.float() if values.dtype is torch.bfloat16 else values).numpy()


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("way", ["on a CPU", "without waiting"])
def test_rows_are_those_of_numpy(name, way):
    tensor = TENSORS[name]
    if way == "on a CPU":
        found = Rows().measured([tensor])[0].tolist()
    else:
        found = rows._row_without_waiting(tensor.detach().reshape(-1)).tolist()
    expected = measured_by_numpy(as_numpy(tensor))
    scale = np.nanmax(np.abs([*expected[3:], 0]))
    for statistic, value, right in zip(MEASURED, found, expected, strict=True):
        is_small = statistic in ("mean", "std")  # sums that cancel out, in float32
        assert value == pytest.approx(
            right, rel=1e-5, abs=1e-6 * scale if is_small else 0, nan_ok=True
        ), statistic


def test_rows_of_several_tensors_use_the_same_memory():
    tensors = [torch.randn(n) for n in (10, 1000, 3)] + [torch.randn(7, dtype=torch.float64)]
    kernel = Rows()
    together = kernel.measured(tensors)
    for row, tensor in zip(together, tensors, strict=True):
        np.testing.assert_allclose(row, measured_by_numpy(tensor.numpy()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", [name for name in TENSORS if TENSORS[name].dtype is not torch.bfloat16]
)
def test_digests_are_those_of_numpy(name):
    assert tuple(digests([TENSORS[name]])[0].tolist()) == content_digest(as_numpy(TENSORS[name]))


def test_digests_of_bfloat16_are_those_of_its_bits():
    tensor = TENSORS["bfloat16"]
    bits = tensor.view(torch.int16).numpy()
    assert tuple(digests([tensor])[0].tolist()) == content_digest(bits)


def test_samples_are_those_of_numpy():
    tensors = [tensor for tensor in TENSORS.values() if tensor.numel()]
    found = sampled(tensors, 100)
    for row, tensor in zip(found, tensors, strict=True):
        expected = sample_of(as_numpy(tensor), 100)
        np.testing.assert_array_equal(row[: len(expected)], expected)
        assert torch.isnan(row[len(expected) :]).all()


def test_the_matrix_is_completed_as_numpys_is():
    from smdebug.numbers.rows import completed

    tensors = [TENSORS["normal"], TENSORS["half zeros"], TENSORS["one value"]]
    samples = sampled(tensors, 64).numpy()
    found = completed(Rows().measured(tensors).numpy(), samples)
    expected, _ = matrix_of([as_numpy(tensor) for tensor in tensors], 64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_has_no_values_to_read_is_not_measurable():
    assert is_measurable(torch.ones(2))
    assert not is_measurable(torch.ones(2, device="meta"))
    assert not is_measurable(torch.ones(2, dtype=torch.complex64))
    assert not is_measurable(torch.eye(3).to_sparse())


def test_nothing_measured_leaves_a_graph():
    parameter = torch.nn.Parameter(torch.randn(3))
    assert not Rows().measured([parameter]).requires_grad
    assert not sampled([parameter], 2).requires_grad
    assert not digests([parameter]).requires_grad
