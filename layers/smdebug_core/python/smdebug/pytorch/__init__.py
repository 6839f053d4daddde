"""`import smdebug.pytorch as smd`: what a PyTorch training needs from this library.

Everything but the hooks works without pytorch installed; a hook's error names what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.saving.hooks.framework import SHARED_HOMES, lazily

if TYPE_CHECKING:
    from smdebug.config.keys import CollectionKeys
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig, SaveConfigMode
    from smdebug.mode_keys import ModeKeys as modes  # noqa: N813
    from smdebug.pytorch.collection import Collection
    from smdebug.pytorch.hook import Hook
    from smdebug.pytorch.singleton_utils import get_hook
    from smdebug.saving.hooks.singleton import del_hook, set_hook
    from smdebug.trials import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]

__getattr__ = lazily(
    __name__,
    {
        **SHARED_HOMES,
        "Collection": "smdebug.pytorch.collection",
        "get_hook": "smdebug.pytorch.singleton_utils",
        "Hook": "smdebug.pytorch.hook",
    },
)
