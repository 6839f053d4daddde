"""PyTorch tensors as numpy arrays: one copy off the device, every value unchanged."""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import numpy as np
import torch

# Plain tensors, as most are: no subclass, and of a type that numpy has.
PLAIN = (torch.Tensor, torch.nn.Parameter)
_PLAIN_DTYPES = frozenset(
    {
        torch.float32,
        torch.float64,
        torch.float16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    }
)
_TORCH_HAS = frozenset(np.dtype(str(dtype).removeprefix("torch.")) for dtype in _PLAIN_DTYPES)
_HAS_ML_DTYPES = importlib.util.find_spec("ml_dtypes") is not None


def is_sharded(tensor: torch.Tensor) -> bool:
    """Return whether this process holds only a part of the tensor."""
    return hasattr(tensor, "to_local") and hasattr(tensor, "placements")


def is_flattened(tensor: torch.Tensor) -> bool:
    """Return whether this process holds only a part of it without its shape (FullyShardedDataParallel)."""
    return getattr(tensor, "_fsdp_flattened", False) is True


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the tensor's values. On the CPU they are not copied: the array is a view of the tensor.

    Of a sharded tensor it is this process's shard. Sparse and quantized tensors are written out; bfloat16
    stays what it is where `ml_dtypes` is installed; otherwise it is widened, as are the floats of 8 bits.
    """
    if is_plain(tensor):
        return np.asarray(tensor.numpy(force=True))
    tensor = tensor.detach()
    if is_sharded(tensor):
        tensor = tensor.to_local()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16 and _HAS_ML_DTYPES:
        import ml_dtypes

        return np.asarray(tensor.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)
    if tensor.is_floating_point() and (tensor.dtype.itemsize == 1 or tensor.dtype is torch.bfloat16):
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


class Copied(NamedTuple):
    """A copy made for the hook, which only the hook can change."""

    array: np.ndarray[Any, Any]


class TensorChange(NamedTuple):
    """What has changed of a plain tensor on the CPU, which is subtracted when it is needed."""

    now: torch.Tensor
    before: torch.Tensor

    @property
    def shape(self) -> torch.Size:
        return self.now.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.now.dtype

    @property
    def nbytes(self) -> int:
        return int(self.now.numel() * self.now.element_size())

    def values(self) -> torch.Tensor:
        """The difference, in memory of its own."""
        with torch.no_grad():
            return self.now.detach() - self.before


def copy_values(to: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
    """Copy between arrays of one dtype, on as many threads as PyTorch uses."""
    dtype = values.dtype
    if dtype.kind == "V" and dtype.itemsize == 2:  # bfloat16
        dtype = np.dtype(np.int16)
        to, values = to.view(dtype), values.view(dtype)
    if dtype in _TORCH_HAS and values.flags.writeable:
        try:
            torch.from_numpy(to).copy_(torch.from_numpy(values))
        except ValueError:
            pass  # it has negative strides
        else:
            return
    np.copyto(to, values)


def owns_its_values(tensor: torch.Tensor, array: np.ndarray[Any, Any]) -> bool:
    """Return whether the array is a copy of the tensor, so that only the hook can change it."""
    if not tensor.is_cpu:
        return True
    if is_plain(tensor):
        return False
    local = tensor.to_local() if is_sharded(tensor) else tensor
    if local.layout is not torch.strided or local.is_quantized:
        return True
    return bool(array.itemsize != local.element_size())


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether it is a plain tensor, not of a subclass, of a type that numpy has."""
    return type(tensor) in PLAIN and tensor.dtype in _PLAIN_DTYPES and tensor.layout is torch.strided
