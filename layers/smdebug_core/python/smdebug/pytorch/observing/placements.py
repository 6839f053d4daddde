"""Which part of each sharded parameter this process holds, as the device mesh says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from smdebug.pytorch.tensors.arrays import is_sharded

_SAME_ROWS = frozenset(
    "tp tensor model mp sp sequence cp context ep expert pp pipeline".split()  # noqa: SIM905
)
"""The names of mesh dimensions along which ranks work on the same rows, or on parts of these."""


def part_facts(parameters: Iterable[tuple[str, nn.Parameter]], model: nn.Module | None) -> dict[str, Any]:
    """The parts that this process holds, by their mesh and placement; nothing where no parameter is sharded.

    Of each dimension of the mesh: its name, its size, this process's place, which dimension of the tensors
    it splits (None where it copies them), and whether ranks along it have rows of their own (None: unknown).
    Of each tensor its name, and its shape as a whole.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    shapes: dict[str, list[int]] = {}
    for name, parameter in parameters:
        if is_sharded(parameter) and parameter.to_local().numel():
            placed = _placed(parameter)
            if placed is not None:
                groups.setdefault(placed, []).append(name)
                shapes[name] = list(parameter.shape)
    if not groups:
        return {}
    is_fully_sharded = model is not None and any(map(_is_fully_sharded, model.modules()))
    return {
        "parts": [
            {
                "mesh": list(names),
                "sizes": list(sizes),
                "first_rank": first,
                "at": list(at),
                "splits": list(splits),
                "own_rows": [_has_own_rows(name, len(sizes), is_fully_sharded) for name in names],
                "tensors": tensors,
                "shapes": [shapes[name] for name in tensors],
            }
            for (names, sizes, first, at, splits), tensors in groups.items()
        ]
    }


def _placed(parameter: Any) -> tuple[Any, ...] | None:
    try:
        mesh = parameter.device_mesh
        at, sizes, first = mesh.get_coordinate(), tuple(mesh.mesh.shape), int(mesh.mesh.flatten()[0])
    except (AttributeError, RuntimeError):  # no mesh as PyTorch's are
        return None
    if at is None:  # this process is no part of it
        return None
    names = tuple(mesh.mesh_dim_names or ("",) * len(sizes))
    splits = tuple(getattr(placement, "dim", None) for placement in parameter.placements)
    return names, sizes, first, tuple(at), splits


def _has_own_rows(name: str, dimensions: int, is_fully_sharded: bool) -> bool | None:
    """Whether ranks along a dimension of the mesh get other rows; None if its name does not say."""
    if name:
        return not any(word in _SAME_ROWS for word in name.lower().replace("-", "_").split("_"))
    return True if dimensions == 1 and is_fully_sharded else None


def _is_fully_sharded(module: nn.Module) -> bool:
    """Whether `fully_shard` has taken the module: ranks of that mesh are data-parallel."""
    fsdp = getattr(torch.distributed, "fsdp", None)
    kind = getattr(fsdp, "FSDPModule", None)
    return kind is not None and isinstance(module, kind)
