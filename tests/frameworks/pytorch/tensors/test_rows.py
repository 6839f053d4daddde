"""What is computed on the device is what numpy computes of the same values."""

import numpy as np
import pytest
import torch

from smdebug.numbers.digests import content_digest
from smdebug.numbers.rows import MEASURED, matrix_of, sample_of
from smdebug.numbers.rows import measured as measured_by_numpy
from smdebug.pytorch.tensors.measurer import TorchMeasurer
from smdebug.pytorch.tensors.on_device import DeviceBatch, Ring
from smdebug.pytorch.tensors.rows import (
    Rows,
    digest_of,
    is_measurable,
    measure,
    row_without_waiting,
    sampled,
)
from smdebug.saving.arrays.measurer import SMALL, InBatch
from tests.support.looking import each

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
    "nothing above zero": -torch.relu(torch.randn(4000)),
    "nothing negative": torch.rand(4096) + 1,
}


def as_numpy(tensor):
    values = tensor.detach()
    return (values.float() if values.dtype is torch.bfloat16 else values).numpy()


def row_on_cpu(tensor):
    return Rows().row(tensor.detach().reshape(-1))


def row_of_pieces_on_cpu(tensor, monkeypatch):
    monkeypatch.setattr("smdebug.pytorch.tensors.rows._PIECE_ON_CPU", 70)
    return row_on_cpu(tensor)


def row_of_pieces(tensor, monkeypatch):
    monkeypatch.setattr("smdebug.pytorch.tensors.rows._PIECE", 70)
    return row_without_waiting(tensor.detach().reshape(-1)).tolist()


def check_row(found, tensor):
    expected = measured_by_numpy(as_numpy(tensor))
    scale = np.nanmax(np.abs([*expected[3:], 0]))
    for statistic, value, right in zip(MEASURED, found, expected, strict=True):
        is_small = statistic in ("mean", "std")  # sums that cancel out, in float32
        assert value == pytest.approx(right, rel=1e-5, abs=1e-6 * scale if is_small else 0, nan_ok=True), (
            statistic
        )


@pytest.mark.parametrize("name", TENSORS)
def test_rows_are_those_of_numpy(name, monkeypatch):
    tensor = TENSORS[name]
    check_row(row_on_cpu(tensor), tensor)
    check_row(row_of_pieces_on_cpu(tensor, monkeypatch), tensor)
    check_row(row_without_waiting(tensor.detach().reshape(-1)).tolist(), tensor)
    check_row(row_of_pieces(tensor, monkeypatch), tensor)


@pytest.mark.parametrize("name", ["normal", "half zeros", "huge", "float64", "float16", "long"])
def test_what_has_changed_is_measured_as_the_difference(name, monkeypatch):
    now = TENSORS[name]
    before = now.flip(0) * 0.5
    whole = measure(now - before)
    monkeypatch.setattr("smdebug.pytorch.tensors.rows._PIECE_ON_CPU", 1000)
    found = measure(now, before=before)
    check_row(found.numbers, now - before)
    np.testing.assert_array_equal(found.sample, whole.sample)
    np.testing.assert_array_equal(before, TENSORS[name].flip(0) * 0.5)  # it is not overwritten


def content_of(tensor):
    return tensor.view(torch.int16).numpy() if tensor.dtype is torch.bfloat16 else as_numpy(tensor)


def parts_of(result):
    """The numbers, the sample and the digest of one tensor, however it was measured."""

    def now(part):
        return part() if callable(part) else part

    if isinstance(result, InBatch):
        return result.numbers()[0], result.samples()[0], result.digests()[0]
    return now(result.numbers), now(result.sample), now(result.digest)


def check_all(results):
    """Compare what was measured of `TENSORS` with numpy's results."""

    for name, tensor in TENSORS.items():
        numbers, sample, digest = parts_of(results[name])
        check_row(numbers.tolist(), tensor)
        expected = sample_of(as_numpy(tensor), 128)
        np.testing.assert_array_equal(sample[: len(expected)], expected)
        assert tuple(digest.tolist()) == content_digest(content_of(tensor)), name


def test_the_tensors_of_a_step_are_measured_as_numpy_does():
    measurer = TorchMeasurer()
    results = {
        name: measurer.measure_tensor(tensor.detach(), digest=True) for name, tensor in TENSORS.items()
    }
    measurer.end_step()
    check_all(results)


@pytest.mark.parametrize("waiting", [1, 1 << 30])
def test_a_device_that_is_not_waited_for_gives_the_same(waiting, monkeypatch):
    monkeypatch.setattr("smdebug.pytorch.tensors.on_device._MOST_WAITING", waiting)
    batch = DeviceBatch(torch.device("cpu"))
    results = {name: batch.add(tensor.detach(), digest=True) for name, tensor in TENSORS.items()}
    batch.end()
    check_all(results)


@pytest.mark.parametrize("on_device", [False, True])
def test_a_tensor_is_measured_as_it_was_when_it_was_observed(on_device):
    measurer = DeviceBatch(torch.device("cpu")) if on_device else TorchMeasurer()
    measure = measurer.add if on_device else measurer.measure_tensor
    results = []
    for size in (4, SMALL + 1):
        tensor = torch.ones(size)
        results.append(measure(tensor, digest=True))
        tensor.zero_()
    if on_device:
        measurer.end()
    else:
        measurer.end_step()
    for result in each(results, at_least=2):
        assert parts_of(result)[0][MEASURED.index("min")] == 1


def test_numbers_on_a_device_are_read_as_they_were():
    ring = Ring(torch.device("cpu"))
    number = torch.tensor([2.5])
    first = ring.put(number)
    number += 1
    second = ring.put(number)
    ring.end()
    assert (float(first), float(second)) == (2.5, 3.5)


@pytest.mark.parametrize("name", [name for name in TENSORS if TENSORS[name].dtype is not torch.bfloat16])
def test_digests_are_those_of_numpy(name):
    assert tuple(digest_of(TENSORS[name]).tolist()) == content_digest(as_numpy(TENSORS[name]))


def test_digests_of_bfloat16_are_those_of_its_bits():
    tensor = TENSORS["bfloat16"]
    bits = tensor.view(torch.int16).numpy()
    assert tuple(digest_of(tensor).tolist()) == content_digest(bits)


def test_samples_are_those_of_numpy():
    tensors = [tensor for tensor in TENSORS.values() if tensor.numel()]
    found = sampled(tensors, 100)
    for row, tensor in each(zip(found, tensors, strict=True), at_least=5):
        expected = sample_of(as_numpy(tensor), 100)
        np.testing.assert_array_equal(row[: len(expected)], expected)
        assert torch.isnan(row[len(expected) :]).all()


def test_the_matrix_is_completed_as_numpys_is():
    from smdebug.numbers.rows import completed

    tensors = [TENSORS["normal"], TENSORS["half zeros"], TENSORS["one value"]]
    samples = sampled(tensors, 64).numpy()
    found = completed(np.array([row_on_cpu(tensor) for tensor in tensors]), samples)
    expected, _ = matrix_of([as_numpy(tensor) for tensor in tensors], 64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_has_no_values_to_read_is_not_measurable():
    assert is_measurable(torch.ones(2))
    assert not is_measurable(torch.ones(2, device="meta"))
    assert not is_measurable(torch.ones(2, dtype=torch.complex64))
    assert not is_measurable(torch.eye(3).to_sparse())


def test_nothing_measured_leaves_a_graph():
    parameter = torch.nn.Parameter(torch.randn(3))
    assert not row_without_waiting(parameter.detach()).requires_grad
    assert not sampled([parameter], 2).requires_grad
    assert not digest_of(parameter.detach()).requires_grad
