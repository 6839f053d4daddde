"""Copies of weights, gradients and optimizer state, to be compared when the training uses them.

They lie in the memory of the host, so that a GPU needs none for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from smdebug.pytorch.repeating.changed_bits import OTHER, form_of_change
from smdebug.pytorch.repeating.repeatable import has_bits

MOST_BYTES = 4 << 30
"""Tensors beyond this many bytes are not copied."""
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Named = Iterable[tuple[str, torch.Tensor]]


class _Kept(NamedTuple):
    """A tensor as it was."""

    tensor: torch.Tensor
    alias: torch.Tensor
    """It keeps the memory: no other tensor gets its address."""
    version: int
    bits: torch.Tensor

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Kept:
        alias = tensor.detach()
        bits = _bits_of(alias)
        if bits.data_ptr() == alias.data_ptr():
            bits = bits.clone()
        return cls(tensor, alias, tensor._version, bits)

    def is_known(self, now: torch.Tensor) -> bool:
        """Whether that is the same tensor in the same memory, to which PyTorch knows of no change."""
        return (
            now is self.tensor
            and now._version == self.version
            and now.dtype is self.alias.dtype
            and now.data_ptr() == self.alias.data_ptr()
            and now.shape == self.alias.shape
            and now.stride() == self.alias.stride()
        )


class StoredCopies:
    """Copies of tensors of one kind, each with its name."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def keep(self, tensors: Named) -> None:
        """Copy these tensors in place of earlier ones of their names."""
        for name, tensor in tensors:
            self._drop(name)
            size = tensor.numel() * tensor.element_size()
            if size and can_compare(tensor) and self._bytes + size <= MOST_BYTES:
                self._kept[name] = _Kept.of(tensor)
                self._bytes += size

    def forget(self) -> None:
        """Drop all copies."""
        self._kept.clear()
        self._bytes = 0

    def compared(self, tensors: Named) -> dict[str, Any] | None:
        """Compare these tensors with their copies, which are dropped; None if none could be compared."""
        compared = 0
        changed: list[tuple[str, _Kept, torch.Tensor]] = []
        for name, tensor in tensors:
            kept = self._drop(name)
            if kept is None or not kept.is_known(tensor):
                continue
            compared += 1
            now = _bits_of(tensor.detach())
            if not torch.equal(now, kept.bits):
                changed.append((name, kept, now))
        if not compared:
            return None
        if not changed:
            return {"equal": compared}
        name, kept, now = changed[0]
        found = {"first": name, "tensors": compared, "changed": len(changed)}
        if len(changed) > 1:  # a program changes several at once, memory does not
            return {**found, "form": OTHER}
        rows = kept.alias.shape[0] if kept.alias.dim() > 1 else 1
        return {**found, **form_of_change(kept.bits, now, kept.alias.dtype, rows)}

    def _drop(self, name: str) -> _Kept | None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._bytes -= kept.bits.numel() * kept.bits.element_size()
        return kept


def can_compare(tensor: torch.Tensor) -> bool:
    """Whether the tensor has all its values here, and counts what changes them."""
    return has_bits(tensor) and tensor.element_size() in _INTEGERS and not tensor.is_inference()


def _bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """The content of a tensor as integers on the host, end to end."""
    return tensor.cpu().contiguous().reshape(-1).view(_INTEGERS[tensor.element_size()])
