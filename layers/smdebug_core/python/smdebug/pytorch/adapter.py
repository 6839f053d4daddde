"""PyTorch's tensors as arrays, and this process among the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from smdebug.pytorch.ranks import rank_and_size
from smdebug.pytorch.tensors.arrays import (
    Copied,
    TensorChange,
    as_array,
    copy_values,
    is_flattened,
    is_plain,
    is_sharded,
    owns_its_values,
)
from smdebug.pytorch.tensors.measurer import TorchMeasurer
from smdebug.pytorch.tensors.rows import is_measurable, measure
from smdebug.saving.arrays.adapter import Array, Caveat, FrameworkAdapter
from smdebug.saving.arrays.measurer import InBatch, Measured

MOST_WRITTEN_OUT = 64 << 20
"""Bytes that a sparse tensor takes with its zeros, as an embedding's gradient, to be measured at most."""
_SHARDED = "sharded"
_SAVE_EVERY_PART = 'include_workers="all" saves every part.'


class TorchAdapter(FrameworkAdapter):
    """Tensors on any device, sharded ones too."""

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def to_array(self, value: Any) -> Array:
        if isinstance(value, torch.Tensor):
            return as_array(value)
        if isinstance(value, Copied):
            return value.array
        return as_array(value.values()) if isinstance(value, TensorChange) else super().to_array(value)

    def owns_its_memory(self, value: Any, array: Array) -> bool:
        if isinstance(value, torch.Tensor):
            return owns_its_values(value, array)
        return isinstance(value, Copied | TensorChange) or super().owns_its_memory(value, array)

    def copy(self, target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
        copy_values(target, source)

    def caveat(self, name: str, value: Any) -> Caveat | None:
        if isinstance(value, torch.Tensor) and is_sharded(value):
            part, whole = tuple(value.to_local().shape), tuple(value.shape)
            return Caveat(
                f"{name} is sharded over several processes (others may be too): each saves its own part, "
                f"here one of shape {part} of {whole}. {_SAVE_EVERY_PART}",
                _SHARDED,
            )
        if isinstance(value, torch.nn.Parameter) and is_flattened(value):
            return Caveat(
                f"{name} is sharded over several processes (others may be too) and flattened between "
                "forwards (FullyShardedDataParallel): each saves the numbers it holds. " + _SAVE_EVERY_PART,
                _SHARDED,
            )
        return None

    def measurer(self) -> TorchMeasurer:
        return TorchMeasurer()

    def measure(self, value: Any, measurer: Any, *, digest: bool) -> Measured | InBatch | None:
        if isinstance(value, TensorChange):
            return measure(value.now, before=value.before)
        if not isinstance(value, torch.Tensor):
            return super().measure(value, measurer, digest=digest)
        found: Measured | InBatch | None
        if is_plain(value) and value.device.type != "meta":  # as most are
            found = measurer.measure_tensor(value.detach(), digest=digest)
            return found
        values = _written_out(_local(value))
        if not is_measurable(values):
            return None
        found = measurer.measure_tensor(values, digest=digest)
        return found

    def form(self, value: Any) -> tuple[tuple[int, ...], str]:
        if isinstance(value, TensorChange):
            value = value.now
        if not isinstance(value, torch.Tensor):
            return super().form(value)
        values = _local(value)
        return tuple(values.shape), str(values.dtype).removeprefix("torch.")

    def number(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return super().number(value)
        if value.numel() != 1:
            return None
        if is_sharded(value):
            value = value.to_local()
            if not value.numel():  # another process holds it
                return None
        if value.is_cpu:
            number = value.item()
            return None if type(number) is complex else number
        if value.is_complex() or value.device.type == "meta":
            return None
        return value.detach()  # waited for later

    def is_whole(self, value: Any) -> bool:
        if not isinstance(value, torch.Tensor):
            return True
        return not (is_sharded(value) or (isinstance(value, torch.nn.Parameter) and is_flattened(value)))

    def is_placed(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and is_sharded(value) and bool(value.to_local().numel())

    def rank_and_size(self) -> tuple[int, int]:
        return rank_and_size()


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of the tensor that this process holds."""
    local: torch.Tensor = tensor.to_local() if is_sharded(tensor) else tensor
    return local.detach()


def _written_out(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its zeros if it is sparse, unless that takes much memory."""
    is_sparse = tensor.layout is not torch.strided
    if is_sparse and tensor.numel() * tensor.element_size() <= MOST_WRITTEN_OUT:
        return tensor.to_dense()
    return tensor
