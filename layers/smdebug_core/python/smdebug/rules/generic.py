"""The built-in rules by name: `from smdebug.rules.generic import VanishingGradient`.

They live in the package `smdebug_rules` and are loaded on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import SMDebugValueError
from smdebug.plain_text import did_you_mean

if TYPE_CHECKING:
    from smdebug_rules.catalog import RuleEntry


def catalog() -> Mapping[str, RuleEntry]:
    """Return the catalog entry of every built-in rule of the original's names, by its name."""
    from smdebug_rules.catalog import CATALOG

    return CATALOG


def every_rule() -> Mapping[str, RuleEntry]:
    """Return the catalog entries of both sets: the rules of the original's names, and the default ones."""
    from smdebug.rules.rule_sets import default_rules

    return {**default_rules(), **catalog()}


def find_rule(name: str) -> RuleEntry:
    """Return the built-in rule of that name, in any case; `SMDebugValueError` suggests the closest name."""
    rules = every_rule()
    wanted = name.strip().lower()
    for entry in rules.values():
        if wanted in (entry.name.lower(), *map(str.lower, entry.aliases)):
            return entry
    hint = did_you_mean(name, rules) or f" There are {', '.join(rules)}."
    raise SMDebugValueError(f"There is no built-in rule {name!r}.{hint}")


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        rules = every_rule()
        if name in rules:
            return rules[name].load()
        for entry in rules.values():
            if name in entry.aliases:
                return entry.load()
    raise AttributeError(f"module {__name__!r} has no rule {name!r}")


def __dir__() -> list[str]:
    return [*every_rule(), "catalog", "every_rule", "find_rule"]
