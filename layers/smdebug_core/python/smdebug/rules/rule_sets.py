"""The built-in rules as sets: those that evaluate a run without named rules, and those of the old library."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from smdebug_rules.catalog import RuleEntry

DEFAULT, USUAL, ALL = "default", "usual", "all"
SET_NAMES = (DEFAULT, USUAL, ALL)

# What evaluated a run without rules before there was a default set.
USUAL_RULES = (
    "ExplodingTensor",
    "VanishingGradient",
    "LossNotDecreasing",
    "AllZero",
    "WeightUpdateRatio",
)

RULES_PAGE = "https://github.com/smdebug-serverless/smdebug-serverless/blob/main/docs/rules.md"

NOT_OBSERVED = (
    "the run holds nothing that the default rules check: neither statistics and facts of its steps, nor "
    "weights, gradients, losses, or inputs and outputs of layers. Save them with smdebug.start(path), or "
    "with a hook that gets only a path; or name other rules: --rule usual, "
    "--rule all, or one of `smdebug rules`"
)


def default_rules() -> Mapping[str, RuleEntry]:
    """Return the catalog entries of the default set, in order; none if it is not installed."""
    if find_spec("smdebug_default_rules") is None:
        return {}
    catalog: Any = import_module("smdebug_default_rules.catalog")
    return cast("Mapping[str, RuleEntry]", catalog.CATALOG)


def documentation_of(rule: str) -> str:
    """Return the address of a built-in rule's section in the documentation."""
    return f"{RULES_PAGE}#{rule.lower()}"
