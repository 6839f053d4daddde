"""The settings of a stack that was deployed with infra's defaults, and whose bucket has one tenant."""

from __future__ import annotations

from typing import Any

from functions.decisions.tenants import Tenants
from functions.world import AppSettings

KEPT_FOR = 90 * 86_400.0


def settings(**changes: Any) -> AppSettings:
    """Return those settings, with some changed."""
    defaults: dict[str, Any] = {
        "default_rules": ("VanishingGradient", "ExplodingTensor", "LossNotDecreasing"),
        "incomplete_step_timeout": 900.0,
        "stall_timeout": 1800.0,
        "silence_timeout": 6 * 3600.0,
        "tenants": Tenants((("all", "runs/"),)),
    }
    return AppSettings(**{**defaults, **changes})
