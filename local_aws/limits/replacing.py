"""Replacing a method of moto; a later stack of the same process replaces the limits of an earlier one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def replace(owner: Any, name: str, limited: Callable[[Callable[..., Any]], Any]) -> None:
    """Let `limited` wrap the method that moto itself has."""
    present = getattr(owner, name)
    original = getattr(present, "without_limits", present)
    replaced = functools.wraps(original)(limited(original))
    replaced.without_limits = original  # type: ignore[attr-defined]
    setattr(owner, name, replaced)
