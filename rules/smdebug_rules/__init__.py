"""The built-in rules: one file each, written with public names only; `catalog` lists them."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from smdebug_rules.catalog import CATALOG

    if name in CATALOG:
        return CATALOG[name].load()
    raise AttributeError(f"module {__name__!r} has no rule {name!r}")
