"""`torch.jit.script` compiles a watched model as if it were not watched.

It compiles the callbacks of modules, too, and fails for those that are not functions of TorchScript. So the
callbacks of a hook leave a model while it is compiled, and come back.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.jit import _recursive

from smdebug.pytorch.listening.callbacks import Callback

_CALLBACKS = ("_forward_pre_hooks", "_forward_hooks")


@functools.cache
def script_without_callbacks() -> None:
    """Let every module that is compiled from now on have no callbacks of a hook meanwhile."""
    compile_module: Any = getattr(_recursive, "create_script_module", None)
    if compile_module is None:  # a later PyTorch may do without
        return

    @functools.wraps(compile_module)
    def compile_without_callbacks(module: Any, *args: Any, **kwargs: Any) -> Any:
        with _without_callbacks(module):
            return compile_module(module, *args, **kwargs)

    _recursive.create_script_module = compile_without_callbacks


@contextlib.contextmanager
def _without_callbacks(module: nn.Module) -> Iterator[None]:
    held = [
        (hooks, dict(hooks))
        for part in module.modules()
        for hooks in (getattr(part, name, None) for name in _CALLBACKS)
        if isinstance(hooks, dict) and any(isinstance(hook, Callback) for hook in hooks.values())
    ]
    try:
        for hooks, all_of_them in held:
            for key, hook in all_of_them.items():
                if isinstance(hook, Callback):
                    del hooks[key]
        yield
    finally:
        for hooks, all_of_them in held:  # in their order
            hooks.clear()
            hooks.update(all_of_them)
