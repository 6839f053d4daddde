"""Rows of numbers, samples and digests of PyTorch's tensors, computed on the device they lie on.

What is returned are tensors of that device: nothing here waits for a GPU. On a CPU a tensor is read while it
is in the cache, and what is seldom needed (zeros, values that are not finite) is computed only if the rest
shows that there are any; on other devices everything is computed, because checking would wait for the device.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch

from smdebug.numbers.digests import (
    WORDS_IN_A_BLOCK,
    block_weight,
    content_digest,
    finished,
    weights,
)
from smdebug.numbers.rows import MEASURED, SAMPLE_SIZE, sampled_places
from smdebug.saving.arrays.measurer import Measured

_WIDTH = len(MEASURED)
_NAN = float("nan")
_INF = float("inf")
# A sum of squares loses the spread of values whose mean is larger than it by more than this.
_NARROW = 1e-3
_HALVES = 2
_PAIR = 8 * _HALVES
# On other devices a large tensor is measured in pieces, so that intermediate results take little memory.
_PIECE = 1 << 21
# On the CPU a piece stays in the processor's cache from the first of its sums to the last.
_PIECE_ON_CPU = 1 << 19
_COLUMNS = 1024
_BLOCKS_TOGETHER = 16
EMPTY_ROW = (0.0, 0.0, 0.0, *([_NAN] * (_WIDTH - 3)))
"""The row of a tensor without values."""


def is_measurable(tensor: torch.Tensor) -> bool:
    """Whether the tensor holds real numbers, contiguous in memory that can be read."""
    return (
        tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and not tensor.is_complex()
        and not tensor.is_quantized
    )


def measure(values: torch.Tensor, *, digest: bool = False, before: torch.Tensor | None = None) -> Measured:
    """Measure a tensor on the CPU, now; or what has changed, if it is given what was `before`."""
    flat = values.detach().reshape(-1)
    if before is None and flat.dtype is torch.float32:
        sample = flat.numpy()[sampled_places(flat.numel(), SAMPLE_SIZE)]
    else:
        places = places_on(flat.device, flat.numel(), SAMPLE_SIZE)
        sampled_values = flat.index_select(0, places)
        if before is not None:
            before = before.detach().reshape(-1)
            sampled_values -= before.index_select(0, places)
        sample = sampled_values.float().numpy()
    halves = None
    if digest:
        content = values.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        halves = np.array(content_digest(content), np.int64)
    return Measured(np.array(_KERNEL.rows.row(flat, before)), sample, halves)


class Rows:
    """Measures tensors on the CPU, in memory that it keeps for the next time."""

    def __init__(self) -> None:
        self._scratch: dict[tuple[str, torch.dtype], torch.Tensor] = {}

    def row(self, values: torch.Tensor, before: torch.Tensor | None = None) -> list[float]:
        """The row of a flat tensor on the CPU; of what has changed, if it is given what was `before`."""
        count = values.numel()
        if not count:
            return list(EMPTY_ROW)
        total = squares = magnitude = 0.0
        smallest, largest = _INF, -_INF
        zeros = 0
        for piece in self._pieces(values, before):
            size = piece.numel()
            part = piece.sum().item()
            total += part
            squares += torch.dot(piece, piece).item()
            if squares != squares or squares == _INF or total != total:
                return self._careful_row(_whole(values, before), count)
            bounds = torch.aminmax(piece)
            low, high = bounds.min.item(), bounds.max.item()
            if low < smallest:
                smallest = low
            if high > largest:
                largest = high
            if low >= 0:
                magnitude += part
                has_zeros = low == 0
            else:
                magnitudes = torch.abs(piece, out=self._kept("magnitudes", piece.dtype, size))
                magnitude += magnitudes.sum().item()
                has_zeros = high >= 0 and _smallest(magnitudes) == 0
            if has_zeros:  # a comparison of floats to floats takes a third of the time of counting
                is_zero = self._kept("magnitudes", piece.dtype, size)
                zeros += int(torch.eq(piece, 0, out=is_zero).sum().item())
        mean = total / count
        variance = squares / count - mean * mean
        if smallest == largest:
            variance = 0.0
        elif variance <= _NARROW * mean * mean or squares < 1e-30 * count:
            wide = _whole(values, before).double()
            variance = float(wide.var(correction=0))
            squares = (variance + mean * mean) * count
        return [
            count,
            0,
            zeros,
            smallest,
            largest,
            mean,
            magnitude / count,
            (squares / count) ** 0.5,
            variance**0.5,
        ]

    def _pieces(self, values: torch.Tensor, before: torch.Tensor | None) -> Iterator[torch.Tensor]:
        """The values in pieces that fit the cache, in a type that sums are exact enough in."""
        is_whole = values.numel() <= _PIECE_ON_CPU
        pieces = (values,) if is_whole else values.split(_PIECE_ON_CPU)
        if before is None:
            yield from map(_computable, pieces)
            return
        befores = (before,) if is_whole else before.split(_PIECE_ON_CPU)
        for now, then in zip(pieces, befores, strict=True):
            change = self._kept("change", now.dtype, now.numel())
            yield _computable(torch.sub(now, then, out=change))

    def _kept(self, use: str, dtype: torch.dtype, size: int) -> torch.Tensor:
        """Memory for so many values, as they were left."""
        kept = self._scratch.get((use, dtype))
        if kept is None or kept.numel() < size:
            kept = self._scratch[use, dtype] = torch.empty(max(size, _PIECE_ON_CPU), dtype=dtype)
        return kept[:size]

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
        std, abs_mean = float(finite.std(correction=0)), float(finite.abs().mean())
        return [
            count,
            non_finite,
            zeros,
            smallest,
            largest,
            mean * scale,
            abs_mean * scale,
            rms * scale,
            std * scale,
        ]


def _computable(values: torch.Tensor) -> torch.Tensor:
    """Return the values in a type in which sums are exact enough."""
    if values.dtype is torch.float32 or values.dtype is torch.float64:
        return values
    return values.float() if values.is_floating_point() else values.double()


def _whole(values: torch.Tensor, before: torch.Tensor | None) -> torch.Tensor:
    return _computable(values if before is None else values - before)


def _smallest(values: torch.Tensor) -> float:
    """Return the smallest value: first of rows, then of the results, which takes half of the time."""
    if values.numel() % _COLUMNS == 0:
        values = values.view(-1, _COLUMNS).amin(1)
    return float(values.min())


class _Kernel(threading.local):
    """What measures tensors on a thread: trainings on two threads share no memory."""

    def __init__(self) -> None:
        self.rows = Rows()


_KERNEL = _Kernel()


def row_without_waiting(values: torch.Tensor) -> torch.Tensor:
    """The row of a flat tensor on any device, computed piece by piece, without waiting for it."""
    count = values.numel()
    if not count:
        return torch.tensor(EMPTY_ROW, dtype=torch.float64, device=values.device)
    if count <= _PIECE:
        return _row_of_piece(values)
    return _combined(torch.stack([_row_of_piece(piece) for piece in values.split(_PIECE)]))


def _combined(rows: torch.Tensor) -> torch.Tensor:
    """The row of a tensor, of the rows of its pieces."""
    count, non_finite, zeros = rows[:, 0], rows[:, 1], rows[:, 2]
    number = count - non_finite
    known = rows[:, 3:]
    is_known = ~torch.isnan(known)
    smallest = torch.where(is_known[:, 0], known[:, 0], _INF).amin()
    largest = torch.where(is_known[:, 1], known[:, 1], -_INF).amax()
    magnitude = torch.maximum(smallest.abs(), largest.abs())
    scale = torch.where((magnitude > 0) & (magnitude < _INF), magnitude, 1.0)
    mean, abs_mean, rms, std = (torch.where(is_known, known, 0.0) / scale)[:, 2:].T
    total = number.sum()
    share = number / total.clamp(min=1)
    whole = (mean * share).sum()
    numbers = torch.stack(
        [
            smallest,
            largest,
            whole * scale,
            (abs_mean * share).sum() * scale,
            (rms.square() * share).sum().sqrt() * scale,
            ((std.square() + (mean - whole).square()) * share).sum().sqrt() * scale,
        ]
    )
    numbers = torch.where(total > 0, numbers, _NAN)
    return torch.cat([torch.stack([count.sum(), non_finite.sum(), zeros.sum()]), numbers])


def _row_of_piece(values: torch.Tensor) -> torch.Tensor:
    count = values.numel()
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
    """The samples of the tensors, a row for each, padded with NaN to `size` values."""
    if not tensors:
        return torch.empty((0, size))
    found = torch.full((len(tensors), size), _NAN, device=tensors[0].device)
    for row, tensor in enumerate(tensors):
        places = places_on(tensor.device, tensor.numel(), size)
        found[row, : len(places)] = tensor.detach().reshape(-1)[places]
    return found


@lru_cache(maxsize=4096)
def places_on(device: torch.device, count: int, size: int) -> torch.Tensor:
    """Where the sample of a flat tensor of `count` values is, as a tensor on the device."""
    return torch.from_numpy(sampled_places(count, size)).to(device)


def digest_of(tensor: torch.Tensor) -> torch.Tensor:
    """The content digest of a tensor, computed where it is."""
    pairs = words_of(tensor).view(-1, _HALVES)
    factors = weights_on(tensor.device, WORDS_IN_A_BLOCK)
    whole = len(pairs) // WORDS_IN_A_BLOCK
    total = torch.zeros(_HALVES, dtype=torch.int64, device=tensor.device)
    for first in range(0, whole, _BLOCKS_TOGETHER):
        last = min(first + _BLOCKS_TOGETHER, whole)
        blocks = pairs[first * WORDS_IN_A_BLOCK : last * WORDS_IN_A_BLOCK]
        blocks = blocks.view(-1, WORDS_IN_A_BLOCK, _HALVES)
        sums = (blocks * factors).sum(1)
        total += (sums * _block_weights_on(tensor.device, first, last)).sum(0)
    rest = pairs[whole * WORDS_IN_A_BLOCK :]
    if len(rest):
        total += (rest * factors[: len(rest)]).sum(0) * signed(block_weight(whole))
    return total + lengths_on(tensor.device, tensor.numel() * tensor.element_size())


def words_of(tensor: torch.Tensor) -> torch.Tensor:
    """The content of a tensor as 64-bit words, padded with zeros to an even number of them."""
    content = tensor.contiguous().reshape(-1)
    size = content.numel() * content.element_size()
    if size % _PAIR == 0 and content.storage_offset() * content.element_size() % 8 == 0:
        return content.view(torch.int64)
    filled = torch.zeros(-(-size // _PAIR) * _PAIR, dtype=torch.uint8, device=content.device)
    filled[:size] = content.view(torch.uint8)
    return filled.view(torch.int64)


@lru_cache(maxsize=16)
def weights_on(device: torch.device, count: int) -> torch.Tensor:
    """The weights of a block, as a column on the device."""
    return torch.from_numpy(weights(count).view("int64")).to(device)[:, None]


@lru_cache(maxsize=4096)
def _block_weights_on(device: torch.device, first: int, last: int) -> torch.Tensor:
    found = [signed(block_weight(block)) for block in range(first, last)]
    return torch.tensor(found, dtype=torch.int64, device=device)[:, None]


@lru_cache(maxsize=4096)
def lengths_on(device: torch.device, length: int) -> torch.Tensor:
    """What the number of bytes adds to each half."""
    found = [finished(0, length), finished(0, length + 1)]
    return torch.tensor(found, dtype=torch.int64, device=device)


def signed(number: int) -> int:
    """The unsigned 64-bit number as a signed one."""
    return number - (1 << 64) if number >> 63 else number
