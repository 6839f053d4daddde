"""`import smdebug.tensorflow as smd`: what a TensorFlow training needs from this library.

Everything but the hooks works without tensorflow installed; a hook's error names what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.saving.hooks.framework import SHARED_HOMES, lazily

if TYPE_CHECKING:
    from smdebug.config.keys import CollectionKeys
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig, SaveConfigMode
    from smdebug.mode_keys import ModeKeys as modes  # noqa: N813
    from smdebug.saving.hooks.singleton import del_hook, set_hook
    from smdebug.tensorflow.collection import Collection
    from smdebug.tensorflow.keras import KerasHook
    from smdebug.tensorflow.session import EstimatorHook, SessionHook
    from smdebug.tensorflow.singleton_utils import get_hook
    from smdebug.trials import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "EstimatorHook",
    "KerasHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "SessionHook",
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
        "Collection": "smdebug.tensorflow.collection",
        "get_hook": "smdebug.tensorflow.singleton_utils",
        "KerasHook": "smdebug.tensorflow.keras",
        "EstimatorHook": "smdebug.tensorflow.session",
        "SessionHook": "smdebug.tensorflow.session",
    },
)
