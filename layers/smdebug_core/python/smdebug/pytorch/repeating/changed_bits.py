"""Tells bits that memory has changed from those that a program has.

A program that writes behind PyTorch's back, through `.data` or NumPy, writes whole tensors, rows or columns,
clips values to a bound, or sets those under a mask. Only two forms are left for memory alone: a single bit
among many values, and a run of values that begins or ends within a row and goes beyond it.
"""

from __future__ import annotations

import math
from typing import Any

import torch

BIT, RUN, OTHER = "bit", "run", "other"
LEAST_RUN = 16
"""A run of fewer values may have come about by clipping."""
_NUMBERS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})


def form_of_change(
    before: torch.Tensor, after: torch.Tensor, dtype: torch.dtype, rows: int
) -> dict[str, Any]:
    """Describe how a flat tensor of `rows` rows has changed, of which both are given as integers."""
    places = (before != after).nonzero().reshape(-1)
    found: dict[str, Any] = {"form": OTHER, "values": len(places), "size": before.numel()}
    if dtype not in _NUMBERS or not len(places):
        return found
    first = int(places[0])
    untouched = (before.view(dtype) != 0) & (before == after)
    if len(places) == 1 and bool(untouched.any()):
        old, new = float(before.view(dtype)[first]), float(after.view(dtype)[first])
        is_bit = _is_bit(int(before[first]) ^ int(after[first]), before.element_size())
        if is_bit and not _is_bound(old, new, after.view(dtype)):
            found.update(form=BIT, before=old, after=new)
    elif len(places) >= LEAST_RUN and rows > 1 and _is_within_rows(places, untouched, before.numel() // rows):
        found.update(form=RUN, place=first)
    return found


def _is_bit(difference: int, size: int) -> bool:
    return (difference & ((1 << 8 * size) - 1)).bit_count() == 1


def _is_bound(old: float, new: float, values: torch.Tensor) -> bool:
    """Whether clipping, pruning, adding zero or taking magnitudes may have changed a value to this one."""
    if math.isnan(new):
        return False
    if new == 0:
        return True
    least, largest = (float(bound) for bound in torch.aminmax(values))
    if new == -old and (least >= 0 or largest <= 0):
        return True
    return (new == largest and new < old) or (new == least and new > old)


def _is_within_rows(places: torch.Tensor, untouched: torch.Tensor, row: int) -> bool:
    """Whether the values are a run over several rows, and leave out a part of its first or last one.

    Zeros that have stayed zeros may belong to what was written.
    """
    first, last = int(places[0]), int(places[-1])
    if first // row == last // row or bool(untouched[first : last + 1].any()):
        return False
    begin, end = first // row * row, (last // row + 1) * row
    return bool(untouched[begin:first].any()) or bool(untouched[last + 1 : end].any())
