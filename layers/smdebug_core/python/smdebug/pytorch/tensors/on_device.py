"""Rows, samples and digests of the tensors of one step on a GPU, or any device that must not be waited for.

Small tensors are copied there and measured together: a kernel is started once for all tensors, not for each.
The results go to the host in one copy, which begins when the step ends and is awaited in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from smdebug.numbers.digests import WORDS_IN_A_BLOCK, block_weight
from smdebug.numbers.rows import MEASURED, SAMPLE_SIZE, sampled_places
from smdebug.pytorch.tensors.rows import (
    EMPTY_ROW,
    digest_of,
    lengths_on,
    places_on,
    row_without_waiting,
    signed,
    weights_on,
    words_of,
)
from smdebug.saving.arrays.measurer import SMALL, Measured

Array = NDArray[Any]
_WIDTH = len(MEASURED)
_INF = float("inf")
_NAN = float("nan")
_NUMBERS_TOGETHER = 256
_MOST_WAITING = 8 << 20
"""Copies of small tensors take up to this many bytes of the device, until they are measured."""


class DeviceBatch:
    """Tensors of one step on one device."""

    def __init__(self, device: torch.device):
        self._device = device
        self._small: list[torch.Tensor] = []
        self._places: list[int] = []
        """The places of the small tensors among all."""
        self._words: list[torch.Tensor] = []
        self._word_places: list[int] = []
        self._word_bytes: list[int] = []
        self._waiting = 0
        self._rows: list[torch.Tensor] = []
        self._samples: list[torch.Tensor] = []
        self._digests: list[torch.Tensor] = []
        self._row_order: list[int] = []
        self._digest_order: list[int] = []
        self._lengths: list[int] = []
        """How long each sample is, in the order of rows."""
        self._count = self._digest_count = 0
        self._results: Results | None = None

    def add(self, values: torch.Tensor, *, digest: bool) -> Measured:
        """Measure a tensor as it is now."""
        with torch.no_grad():
            return self._add(values, digest)

    def _add(self, values: torch.Tensor, digest: bool) -> Measured:
        size = values.numel()
        if not size:
            halves = partial(self._digest, self._add_digest(values)) if digest else None
            return Measured(np.array(EMPTY_ROW), np.empty(0, np.float32), halves)
        flat = values.reshape(-1)
        place, self._count = self._count, self._count + 1
        halves = None
        if digest:
            halves = partial(self._digest, self._add_digest(values))
        if size <= SMALL:
            self._small.append(flat.to(torch.float64, copy=True))
            self._places.append(place)
            self._waiting += 8 * size
            if self._waiting >= _MOST_WAITING:
                self._measure_small()
        else:
            places = places_on(self._device, size, SAMPLE_SIZE)
            self._rows.append(row_without_waiting(flat)[None])
            self._samples.append(flat.index_select(0, places).float())
            self._row_order.append(place)
            self._lengths.append(len(places))
        return Measured(partial(self._row, place), partial(self._sample, place), halves)

    def end(self) -> None:
        """Begin to copy all results to the host."""
        with torch.no_grad():
            self._measure_small()
            rows = _joined(self._rows, (0, _WIDTH), torch.float64, self._device)
            samples = _joined(self._samples, (0,), torch.float32, self._device)
            digests = _joined(self._digests, (0, 2), torch.int64, self._device)
            content = torch.cat([part.reshape(-1).view(torch.uint8) for part in (rows, digests, samples)])
            self._results = Results(fetched(content), self._row_order, self._lengths, self._digest_order)
        self._rows, self._samples, self._digests = [], [], []

    def _add_digest(self, values: torch.Tensor) -> int:
        place, self._digest_count = self._digest_count, self._digest_count + 1
        size = values.numel() * values.element_size()
        if 0 < values.numel() <= SMALL:
            words = words_of(values)
            if words.data_ptr() == values.data_ptr():
                words = words.clone()
            self._words.append(words.view(-1, 2))
            self._word_places.append(place)
            self._word_bytes.append(size)
            self._waiting += size
        else:
            self._digests.append(digest_of(values)[None])
            self._digest_order.append(place)
        return place

    def _measure_small(self) -> None:
        if self._small:
            layout = _layout_of(self._device, tuple(map(len, self._small)))
            flat = torch.cat(self._small)
            self._rows.append(_rows_of(flat, layout))
            self._samples.append(flat.index_select(0, layout.sampled).float())
            self._lengths += layout.sample_lengths
            self._row_order += self._places
        if self._words:
            pairs = tuple(map(len, self._words))
            found = _digests_of(torch.cat(self._words), pairs, tuple(self._word_bytes))
            self._digests.append(found)
            self._digest_order += self._word_places
        self._small, self._places = [], []
        self._words, self._word_places, self._word_bytes = [], [], []
        self._waiting = 0

    def _row(self, place: int) -> Array:
        assert self._results is not None
        return self._results.rows[place]

    def _sample(self, place: int) -> Array:
        assert self._results is not None
        return self._results.samples[place]

    def _digest(self, place: int) -> Array:
        assert self._results is not None
        return self._results.digests[place]


class Ring:
    """Numbers of several steps on one device, copied to the host together."""

    def __init__(self, device: torch.device):
        self.device = device
        self._values = torch.empty(_NUMBERS_TOGETHER, dtype=torch.float64, device=device)
        self._count = 0
        self._fetch: Callable[[], Array] | None = None

    @property
    def is_full(self) -> bool:
        return self._count == _NUMBERS_TOGETHER

    def put(self, number: torch.Tensor) -> Number:
        """Keep a number as it is now."""
        place, self._count = self._count, self._count + 1
        with torch.no_grad():
            self._values[place].copy_(number.reshape(()))
        return Number(self, place)

    def end(self) -> None:
        """Begin to copy the numbers to the host."""
        self._fetch = fetched(self._values)

    @cached_property
    def values(self) -> Array:
        """The numbers on the host."""
        return (self._fetch or fetched(self._values))()


class Number(NamedTuple):
    """A number that is read when it is needed."""

    ring: Ring
    place: int

    def __float__(self) -> float:
        return float(self.ring.values[self.place])


class Results:
    """What a batch has computed, read from the host's copy when it is needed."""

    def __init__(
        self,
        content: Callable[[], Array],
        row_order: Sequence[int],
        lengths: Sequence[int],
        digest_order: Sequence[int],
    ):
        self._content = content
        self._row_order = row_order
        self._lengths = lengths
        self._digest_order = digest_order

    @cached_property
    def rows(self) -> dict[int, Array]:
        """The rows by the places of their tensors."""
        rows = self._bytes[: self._rows_end].view(np.float64).reshape(-1, _WIDTH)
        return dict(zip(self._row_order, rows, strict=True))

    @cached_property
    def digests(self) -> dict[int, Array]:
        """The digests by their places."""
        halves = self._bytes[self._rows_end : self._digests_end].view(np.int64).reshape(-1, 2)
        return dict(zip(self._digest_order, halves, strict=True))

    @cached_property
    def samples(self) -> dict[int, Array]:
        """The samples by the places of their tensors."""
        values = self._bytes[self._digests_end :].view(np.float32)
        samples = np.split(values, np.cumsum(self._lengths)[:-1]) if self._lengths else []
        return dict(zip(self._row_order, samples, strict=True))

    @cached_property
    def _bytes(self) -> Array:
        return self._content()

    @property
    def _rows_end(self) -> int:
        return 8 * _WIDTH * len(self._row_order)

    @property
    def _digests_end(self) -> int:
        return self._rows_end + 16 * len(self._digest_order)


def fetched(values: torch.Tensor) -> Callable[[], Array]:
    """Begin to copy a tensor to the host; what is returned waits for the copy."""
    if values.device.type != "cuda":
        copied = values.cpu().numpy()
        return lambda: copied
    host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    host.copy_(values, non_blocking=True)
    done = torch.cuda.Event()
    done.record()

    def wait() -> Array:
        done.synchronize()
        return np.asarray(host.numpy())

    return wait


class _Layout(NamedTuple):
    """Where tensors of given sizes are in the packed one, as tensors on the device."""

    lengths: torch.Tensor
    owners: torch.Tensor
    sampled: torch.Tensor
    sample_lengths: list[int]


@lru_cache(maxsize=16)
def _layout_of(device: torch.device, sizes: tuple[int, ...]) -> _Layout:
    starts = np.cumsum((0, *sizes[:-1]))
    places = [sampled_places(size, SAMPLE_SIZE) for size in sizes]
    sampled = np.concatenate([start + place for start, place in zip(starts, places, strict=True)])
    return _Layout(
        torch.tensor(sizes, dtype=torch.int64).to(device),
        torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(device),
        torch.from_numpy(sampled).to(device),
        [len(place) for place in places],
    )


@lru_cache(maxsize=16)
def _word_owners_on(device: torch.device, pairs: tuple[int, ...]) -> torch.Tensor:
    return torch.from_numpy(np.repeat(np.arange(len(pairs)), pairs)).to(device)


@lru_cache(maxsize=16)
def _word_weights_on(device: torch.device, pairs: tuple[int, ...]) -> torch.Tensor:
    return torch.cat([weights_on(device, WORDS_IN_A_BLOCK)[:count] for count in pairs])


def _rows_of(flat: torch.Tensor, layout: _Layout) -> torch.Tensor:
    """The rows of packed float64 values."""

    def of_each(values: torch.Tensor, reduce: str) -> torch.Tensor:
        found: torch.Tensor = torch.segment_reduce(values, reduce, lengths=layout.lengths, unsafe=True)
        return found

    is_finite = torch.isfinite(flat)
    kept = torch.where(is_finite, flat, 0.0)
    magnitudes = kept.abs()
    count = layout.lengths.double()
    non_finite = count - of_each(is_finite.double(), "sum")
    number = (count - non_finite).clamp(min=1)
    largest = of_each(magnitudes, "max")
    scale = torch.where(largest > 0, largest, 1.0)
    scaled = kept / scale[layout.owners]
    mean = of_each(scaled, "sum") / number
    spread = torch.where(is_finite, scaled - mean[layout.owners], 0.0).square()
    smallest = of_each(torch.where(is_finite, flat, _INF), "min")
    greatest = of_each(torch.where(is_finite, flat, -_INF), "max")
    std = (of_each(spread, "sum") / number).sqrt() * scale
    numbers = torch.stack(
        [
            smallest,
            greatest,
            mean * scale,
            of_each(magnitudes, "sum") / number,
            (of_each(scaled.square(), "sum") / number).sqrt() * scale,
            torch.where(smallest == greatest, 0.0, std),
        ]
    )
    numbers = torch.where(non_finite < count, numbers, _NAN)
    zeros = of_each((flat == 0).double(), "sum")
    return torch.cat([torch.stack([count, non_finite, zeros]), numbers]).T.contiguous()


def _digests_of(words: torch.Tensor, pairs: tuple[int, ...], lengths: tuple[int, ...]) -> torch.Tensor:
    """The digests of packed words, given the number of pairs and of bytes of each tensor."""
    device = words.device
    totals = torch.zeros((len(pairs), 2), dtype=torch.int64, device=device)
    weighted = words * _word_weights_on(device, pairs)
    totals.index_add_(0, _word_owners_on(device, pairs), weighted)
    return totals * signed(block_weight(0)) + _all_lengths_on(device, lengths)


@lru_cache(maxsize=64)
def _all_lengths_on(device: torch.device, lengths: tuple[int, ...]) -> torch.Tensor:
    return torch.stack([lengths_on(device, length) for length in lengths])


def _joined(
    parts: Sequence[torch.Tensor], empty: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    return torch.cat(list(parts)) if parts else torch.empty(empty, dtype=dtype, device=device)
