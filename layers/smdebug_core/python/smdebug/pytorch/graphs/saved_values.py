"""The operations of a graph, and what they saved for the backward pass, as far as reading it is free."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch


def operations(root: Any, most: int, goes_on: Callable[[str], bool]) -> Iterator[Any]:
    """Yield the operations from `root` on, the nearest first; below those only whose name `goes_on`.

    No operation is looked below any more once `most` are known.
    """
    waiting, seen = deque([root]), {root}
    while waiting and len(seen) <= most:
        node = waiting.popleft()
        yield node
        if not goes_on(node.name()):
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


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


def constant_factor(node: Any) -> float | None:
    """Return the number that a product or a quotient has beside what is learnt; None if it has none."""
    try:
        other = node._saved_other
    except (AttributeError, RuntimeError):
        return None
    if isinstance(other, torch.Tensor):
        if other.numel() != 1 or other.requires_grad or other.device.type != "cpu":
            return None
        other = other.item()
    return float(other) if isinstance(other, int | float) and other else None
