"""Which layer a tensor belongs to, and which of two layers comes first."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BEFORE = re.compile(
    r"^(gradients?|updates?|parameters?|inputs?|outputs?|weights?|bias(es)?)/+", re.IGNORECASE
)
_AFTER = re.compile(
    r"([./_](weight|bias|kernel|gamma|beta|weights|biases)(_\d+)?"
    r"|[._/](in|out)puts?([._]\d+)*)(:\d+)?$",
    re.IGNORECASE,
)


def layer_of(tensor: str) -> str:
    """Return the layer in a tensor's name: `fc1` of `gradient/fc1.weight` and `fc1_output_0`."""
    layer = _BEFORE.sub("", tensor)
    return _AFTER.sub("", layer) or layer or tensor


def is_same(layer: str, other: str) -> bool:
    """Return whether both are the same layer, or one of them contains the other."""
    return (
        layer == other
        or other.startswith((f"{layer}.", f"{layer}/"))
        or layer.startswith((f"{other}.", f"{other}/"))
    )


def comes_first(layer: str, other: str, order: Sequence[str]) -> bool | None:
    """Return whether `layer` comes before `other` in the model; None if `order` does not tell."""
    first, second = _place(layer, order), _place(other, order)
    return None if first is None or second is None or first == second else first < second


def _place(name: str, order: Sequence[str]) -> int | None:
    return next((at for at, known in enumerate(order) if is_same(known, name)), None)
