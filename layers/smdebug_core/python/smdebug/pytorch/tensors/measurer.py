"""Measures PyTorch's tensors for the default plan, each where it lies.

On the CPU small tensors are copied and measured together in the background, large ones at once. On other
devices everything is computed there, and one copy to the host begins when the step ends: the training
does not wait for the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import torch

from smdebug.pytorch.tensors.arrays import PLAIN
from smdebug.pytorch.tensors.on_device import DeviceBatch, Ring
from smdebug.pytorch.tensors.rows import measure
from smdebug.saving.arrays.measurer import SMALL, InBatch, Measured, Measurer

_OF_NUMPY = frozenset(
    {torch.float32, torch.float16, torch.float64, torch.int64, torch.int32, torch.int16}
    | {torch.int8, torch.uint8, torch.bool}
)

# One call for all tensors; not part of the public interface.
_flatten = getattr(torch._C._nn, "flatten_dense_tensors", None)


def _flattened(values: Sequence[torch.Tensor]) -> torch.Tensor:
    """The tensors end to end, in memory of their own."""
    if len(values) == 1:
        return values[0].detach().reshape(-1).clone()
    return _flatten(values) if _flatten else torch.cat([value.reshape(-1) for value in values])


def _is_usual(value: Any) -> bool:
    """Whether it is a plain tensor of float32 on the CPU, as most are there."""
    return (
        type(value) in PLAIN
        and value.dtype is torch.float32
        and value.is_cpu
        and value.layout is torch.strided
    )


class _Last(NamedTuple):
    """What was measured last."""

    value: ref[torch.Tensor]
    version: int
    digest: bool
    measured: Measured

    def is_of(self, value: torch.Tensor, digest: bool) -> bool:
        """Whether it is the same tensor, and has not changed since."""
        return self.value() is value and self.digest is digest and 0 <= self.version == _version(value)


def _version(value: torch.Tensor) -> int:
    """How often the tensor was changed; -1 if it does not count that."""
    return -1 if value.is_inference() else value._version


class TorchMeasurer(Measurer):
    """Measures the tensors of one step after another."""

    def __init__(self) -> None:
        super().__init__()
        self._devices: dict[torch.device, DeviceBatch] = {}
        self._ring: Ring | None = None
        self._last: _Last | None = None

    def measure_tensor(self, values: torch.Tensor, *, digest: bool) -> Measured | InBatch:
        """Measure a measurable tensor without a graph as it is now."""
        if values.is_cpu:
            return self._on_cpu(values, digest)
        batch = self._devices.get(values.device)
        if batch is None:
            batch = self._devices[values.device] = DeviceBatch(values.device)
        return batch.add(values, digest=digest)

    def fits(self, value: Any) -> bool:
        return _is_usual(value) and 1 < value.numel() <= SMALL

    def fit_again(self, values: Sequence[Any], shapes: Sequence[Any]) -> bool:
        for value, shape in zip(values, shapes, strict=True):  # a generator takes twice as long
            if not _is_usual(value) or value.shape != shape:
                return False
        return True

    def measure_again(self, value: Any, *, digest: bool) -> Measured | InBatch | None:
        if not _is_usual(value):
            return None
        if value.numel() > SMALL:
            return self._measure_large(value, digest)
        copy: Any = value.detach().numpy().flatten()
        return self._batch.add(copy, copy if digest else None)

    def _measure_large(self, value: torch.Tensor, digest: bool) -> Measured:
        """Measure a large tensor, once if a container returns what its last layer has returned."""
        last = self._last
        if last is None or not last.is_of(value, digest):
            self._last = last = _Last(ref(value), _version(value), digest, measure(value, digest=digest))
        return last.measured

    def packed(self, values: Sequence[torch.Tensor]) -> Any:
        if not torch.is_grad_enabled():
            return _flattened(values).numpy()
        torch.set_grad_enabled(False)  # a `with` block takes as long as what it is around
        try:
            return _flattened(values).numpy()
        finally:
            torch.set_grad_enabled(True)

    def measure_together(
        self, values: Sequence[torch.Tensor], *, digest: bool, before: Any = None
    ) -> InBatch:
        sizes = [value.numel() for value in values]
        return self._batch.add_packed(self.packed(values), sizes, digest=digest, before=before)

    def kept(self, number: Any) -> Any:
        if not isinstance(number, torch.Tensor):
            return number
        if self._ring is None or self._ring.is_full or self._ring.device != number.device:
            self._end_ring()
            self._ring = Ring(number.device)
        return self._ring.put(number)

    def end_step(self) -> None:
        super().end_step()
        self._last = None
        self._end_ring()
        for batch in self._devices.values():
            batch.end()
        self._devices = {}

    def _end_ring(self) -> None:
        if self._ring is not None:
            self._ring.end()
            self._ring = None

    def _on_cpu(self, values: torch.Tensor, digest: bool) -> Measured | InBatch:
        if values.numel() > SMALL:
            return measure(values, digest=digest)
        if values.dtype in _OF_NUMPY:
            copy: Any = values.numpy().flatten()
            return self._batch.add(copy, copy if digest else None)
        content = None
        if digest:
            content = values.contiguous().reshape(-1).view(torch.uint8).numpy().copy()
        return self._batch.add(values.float().numpy().reshape(-1), content)
