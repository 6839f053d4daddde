"""Rows of numbers, samples and digests of PyTorch's tensors, computed on the device they lie on.

What is returned are tensors of that device: nothing here waits for a GPU. On a CPU a tensor is read while it
is in the cache, and what is seldom needed (zeros, values that are not finite) is computed only if the rest
says that there are any; on other devices all is computed, because to look would be to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from smdebug.numbers.digests import WORDS_IN_A_BLOCK, block_weight, finished, weights
from smdebug.numbers.rows import MEASURED, SAMPLE_SIZE, sampled_places
from smdebug.saving.observing import Measured

_WIDTH = len(MEASURED)
_NAN = float("nan")
_INF = float("inf")
# A sum of squares loses the spread of values whose mean is larger than it by more than this.
_NARROW = 1e-3
_HALVES = 2


def is_measurable(tensor: torch.Tensor) -> bool:
    """Whether the tensor holds real numbers, side by side in memory that can be read."""
    return (
        tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and not tensor.is_complex()
        and not tensor.is_quantized
    )


def measure(values: torch.Tensor, *, digest: bool = False) -> Measured:
    """Measure a tensor where it is, without waiting for it."""
    with torch.no_grad():
        flat = values.detach().reshape(-1)
        sample = flat[_places_on(flat.device, flat.numel(), SAMPLE_SIZE)].float()
        halves = _digest(values.detach()) if digest else None
        if flat.is_cpu:
            numbers = np.array(_KERNEL.row(flat))
            return Measured(numbers, sample.numpy(), None if halves is None else halves.numpy())
        row = _row_without_waiting(flat)
    return Measured(fetched(row), fetched(sample), None if halves is None else fetched(halves))


def fetched(values: torch.Tensor) -> Callable[[], NDArray[Any]]:
    """Copy a small tensor to the host; the copy is waited for when it is asked for."""
    if values.device.type != "cuda":
        copied = values.cpu().numpy()
        return lambda: copied
    host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    host.copy_(values, non_blocking=True)
    done = torch.cuda.Event()
    done.record()

    def wait() -> NDArray[Any]:
        done.synchronize()
        return np.asarray(host.numpy())

    return wait


class Rows:
    """Measures tensors, in memory that it keeps for the next time."""

    def __init__(self) -> None:
        self._scratch = torch.empty(0)

    def measured(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """The numbers of `MEASURED`, a row for each tensor. All tensors lie on the same device."""
        if not tensors:
            return torch.empty((0, _WIDTH))
        with torch.no_grad():
            flat = [tensor.detach().reshape(-1) for tensor in tensors]
            if flat[0].is_cpu:
                return torch.tensor([self.row(values) for values in flat], dtype=torch.float64)
            return torch.stack([_row_without_waiting(values) for values in flat])

    def row(self, values: torch.Tensor) -> list[float]:
        """The row of a flat tensor on the CPU."""
        count = values.numel()
        if not count:
            return [0.0, 0.0, 0.0] + [_NAN] * (_WIDTH - 3)
        values = self._computable(values)
        total = float(values.sum())
        squares = float(torch.dot(values, values))
        if squares != squares or squares == _INF or total != total:
            return self._careful_row(values, count)
        smallest, largest = (float(bound) for bound in torch.aminmax(values))
        magnitudes = self._magnitudes(values)
        zeros = 0
        if smallest <= 0 <= largest and (
            values.dtype is torch.bool or float(magnitudes.min()) == 0
        ):
            zeros = count - int(torch.count_nonzero(values))
        mean = total / count
        variance = squares / count - mean * mean
        if smallest == largest:
            variance = 0.0
        elif variance <= _NARROW * mean * mean or squares < 1e-30 * count:
            variance = float(values.double().var(correction=0))
            squares = (variance + mean * mean) * count
        mean_abs = float(magnitudes.sum()) / count
        return [
            *(count, 0, zeros, smallest, largest, mean, mean_abs),
            *((squares / count) ** 0.5, variance**0.5),
        ]

    def _careful_row(self, values: torch.Tensor, count: int) -> list[float]:
        """The row of values some of which are not finite, or too large to be squared."""
        finite = values[torch.isfinite(values)].double()
        non_finite = count - finite.numel()
        if not finite.numel():
            return [count, non_finite, 0, *([_NAN] * (_WIDTH - 3))]
        smallest, largest = (float(bound) for bound in torch.aminmax(finite))
        scale = max(abs(smallest), abs(largest)) or 1.0
        finite /= scale
        zeros = finite.numel() - int(torch.count_nonzero(finite))
        mean, rms = float(finite.mean()), float(finite.square().mean()) ** 0.5
        std, mean_abs = float(finite.std(correction=0)), float(finite.abs().mean())
        return [
            *(count, non_finite, zeros, smallest, largest),
            *(mean * scale, mean_abs * scale, rms * scale, std * scale),
        ]

    def _computable(self, values: torch.Tensor) -> torch.Tensor:
        """The values in a type that sums are exact enough in."""
        if values.dtype in (torch.float32, torch.float64):
            return values
        return values.float() if values.is_floating_point() else values.double()

    def _magnitudes(self, values: torch.Tensor) -> torch.Tensor:
        if self._scratch.numel() < values.numel() or self._scratch.dtype is not values.dtype:
            self._scratch = torch.empty(values.numel(), dtype=values.dtype)
        return torch.abs(values, out=self._scratch[: values.numel()])


_KERNEL = Rows()


def _row_without_waiting(values: torch.Tensor) -> torch.Tensor:
    count = values.numel()
    if not count:
        empty = [0.0, 0.0, 0.0] + [_NAN] * (_WIDTH - 3)
        return torch.tensor(empty, dtype=torch.float64, device=values.device)
    wide = values if values.dtype is torch.float64 else values.float()
    is_finite = torch.isfinite(wide)
    non_finite = count - is_finite.sum()
    number = (count - non_finite).clamp(min=1)
    kept = torch.where(is_finite, wide, 0.0)
    largest_magnitude = kept.abs().amax()
    scale = torch.where(largest_magnitude > 0, largest_magnitude, 1.0)
    scaled = kept / scale
    mean = scaled.sum(dtype=torch.float64) / number
    centred = torch.where(is_finite, scaled - mean, 0.0)
    numbers = torch.stack(
        [
            torch.where(is_finite, wide, _INF).amin().double(),
            torch.where(is_finite, wide, -_INF).amax().double(),
            mean * scale,
            scaled.abs().sum(dtype=torch.float64) / number * scale,
            (scaled.square().sum(dtype=torch.float64) / number).sqrt() * scale,
            (centred.square().sum(dtype=torch.float64) / number).sqrt() * scale,
        ]
    )
    numbers = torch.where(non_finite < count, numbers, _NAN)
    zeros = (wide == 0).sum()
    counts = torch.stack([torch.full_like(zeros, count), non_finite, zeros])
    return torch.cat([counts.double(), numbers])


def sampled(tensors: Sequence[torch.Tensor], size: int) -> torch.Tensor:
    """The samples of the tensors, a row for each, filled up with NaN to `size` values."""
    if not tensors:
        return torch.empty((0, size))
    found = torch.full((len(tensors), size), _NAN, device=tensors[0].device)
    for row, tensor in enumerate(tensors):
        places = _places_on(tensor.device, tensor.numel(), size)
        found[row, : len(places)] = tensor.detach().reshape(-1)[places]
    return found


@lru_cache(maxsize=4096)
def _places_on(device: torch.device, count: int, size: int) -> torch.Tensor:
    return torch.from_numpy(sampled_places(count, size)).to(device)


def digests(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The content digests of the tensors, two 64-bit integers a row, as `content_digest` has them."""
    if not tensors:
        return torch.empty((0, _HALVES), dtype=torch.int64)
    with torch.no_grad():
        return torch.stack([_digest(tensor.detach()) for tensor in tensors])


def _digest(tensor: torch.Tensor) -> torch.Tensor:
    words = _words(tensor)
    length = tensor.numel() * tensor.element_size()
    return torch.stack([_half(words[half::2], length + half) for half in range(_HALVES)])


def _words(tensor: torch.Tensor) -> torch.Tensor:
    content = tensor.contiguous().reshape(-1)
    size = content.numel() * content.element_size()
    if size % 8 == 0 and content.storage_offset() * content.element_size() % 8 == 0:
        return content.view(torch.int64)
    filled = torch.zeros(-(-size // 8) * 8, dtype=torch.uint8, device=content.device)
    filled[:size] = content.view(torch.uint8)
    return filled.view(torch.int64)


def _half(words: torch.Tensor, length: int) -> torch.Tensor:
    total = torch.full((), finished(0, length), dtype=torch.int64, device=words.device)
    for block, start in enumerate(range(0, words.numel(), WORDS_IN_A_BLOCK)):
        piece = words[start : start + WORDS_IN_A_BLOCK]
        total += _signed(block_weight(block)) * _dot(piece, _weights_on(words.device, len(piece)))
    return total


def _dot(words: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    if words.device.type == "cpu":
        return torch.dot(words, factors)
    return (words * factors).sum()  # CUDA has no dot product of integers


@lru_cache(maxsize=1024)
def _weights_on(device: torch.device, count: int) -> torch.Tensor:
    return torch.from_numpy(weights(count).view("int64")).to(device)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
