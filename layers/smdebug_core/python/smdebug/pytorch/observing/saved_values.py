"""Values that operations of a graph have saved for their backward pass, as far as reading them is free."""

from __future__ import annotations

from typing import Any

import torch


def saved_value(node: Any, name: str) -> torch.Tensor | None:
    """Return a value that the operation has saved; None if there is none, or reading would compute it.

    Checkpointing saves no values but how to compute them again, and offloading saves them elsewhere. Before
    PyTorch 2.7 nobody can tell, and nothing is read.
    """
    try:
        raw = getattr(node, f"_raw_{name.removeprefix('_')}")
        if raw is None or raw.unpack_hook is not None:
            return None
        value = getattr(node, name)
    except (AttributeError, RuntimeError):  # changed in place since, or freed
        return None
    return value.detach() if isinstance(value, torch.Tensor) else None
