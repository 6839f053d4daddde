"""Save tensors while a model trains, look at them, and let rules watch."""

from __future__ import annotations

from smdebug.mode_keys import ModeKeys as modes  # noqa: N813

__version__ = "0.1.0"
