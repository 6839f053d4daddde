"""One line for Lightning's Trainer: `Trainer(callbacks=[smdebug.lightning.Callback(out_dir)])`.

Without lightning installed, an error names what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.saving.hooks.framework import lazily

if TYPE_CHECKING:
    from smdebug.lightning.callback import Callback

__all__ = ["Callback"]

__getattr__ = lazily(__name__, {"Callback": "smdebug.lightning.callback"})
