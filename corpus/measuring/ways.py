"""The ways of saving that are measured: as the default plan does, or of tensors that somebody chose."""

from __future__ import annotations

from typing import Any

from smdebug.config.save_config import SaveConfig

DEFAULT = "default"
WAYS = {
    DEFAULT: (),
    "usual": ("weights", "biases", "gradients", "losses"),
    "all": ("all",),
}
"""The collections of each way; those that are chosen are saved every 10 steps."""

CHOOSING = ("pytorch", "keras")
"""The frameworks whose programs are watched from outside, where tensors can be chosen for them."""


def options(way: str) -> dict[str, Any]:
    """Return what `smdebug.start` is given beside the place."""
    collections = WAYS[way]
    if not collections:
        return {}
    return {"include_collections": collections, "save_config": SaveConfig(save_interval=10)}
