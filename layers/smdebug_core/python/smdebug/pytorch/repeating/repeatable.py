"""What can be computed twice."""

from __future__ import annotations

import torch
from torch import nn

from smdebug.pytorch.modules.layers import Layered
from smdebug.pytorch.modules.names import unwrapped

COMPILED = "the model is compiled"
_WHOLE = (torch.Tensor, nn.Parameter)


def has_bits(tensor: torch.Tensor) -> bool:
    """Whether the tensor has all its values here, end to end."""
    is_whole = type(tensor) in _WHOLE and tensor.layout is torch.strided
    return is_whole and not (tensor.is_quantized or tensor.is_meta)


def reason_against(model: nn.Module, structure: Layered, ranks: int) -> str | None:
    """Why a forward of this model is not computed twice; None if it can be."""
    root, modules = unwrapped(model), [*model.modules()]
    layers = structure.layers
    if any(layer.is_in_graph or layer.module._compiled_call_impl is not None for layer in layers):
        return COMPILED
    if any(isinstance(module, torch.jit.ScriptModule) for module in modules):
        return "the model is scripted"
    if any(type(module).__name__ == "OptimizedModule" for module in modules):
        return COMPILED
    if any(isinstance(module, nn.DataParallel) for module in modules):
        return "the model runs on several devices at once (DataParallel)"
    if not all(map(has_bits, root.parameters())):
        return "parameters of the model are sharded, quantised or have no values yet"
    if ranks > 1 and any(isinstance(module, nn.SyncBatchNorm) for module in root.modules()):
        return "its forward exchanges numbers with other ranks (SyncBatchNorm)"
    return None
