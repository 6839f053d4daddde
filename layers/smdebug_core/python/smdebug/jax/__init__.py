"""`import smdebug.jax as smd`: the hook for training loops in JAX, with Flax, Equinox, Haiku or plain.

Without jax installed, an error names what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.saving.hooks.framework import SHARED_HOMES, lazily

if TYPE_CHECKING:
    from smdebug.config.keys import CollectionKeys
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig, SaveConfigMode
    from smdebug.jax.hook import Hook
    from smdebug.mode_keys import ModeKeys as modes  # noqa: N813
    from smdebug.saving.hooks.singleton import del_hook, set_hook
    from smdebug.trials import create_trial

__all__ = [
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "modes",
    "set_hook",
]

__getattr__ = lazily(__name__, {**SHARED_HOMES, "Hook": "smdebug.jax.hook"})
