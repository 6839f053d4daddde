"""One line for the Trainer of transformers: `Trainer(…, callbacks=[smdebug.huggingface.Callback(out_dir)])`.

Without transformers installed, an error names what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.saving.hooks.framework import lazily

if TYPE_CHECKING:
    from smdebug.huggingface.callback import Callback

__all__ = ["Callback"]

__getattr__ = lazily(__name__, {"Callback": "smdebug.huggingface.callback"})
