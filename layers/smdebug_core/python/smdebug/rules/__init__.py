"""Rules: write one, invoke it over a run, read what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.rules.findings import Finding
    from smdebug.rules.req_tensors import RequiredTensors, RequiredTensorsForTrial
    from smdebug.rules.rule import Rule
    from smdebug.rules.rule_invoker import invoke, invoke_rule
    from smdebug.rules.state import RuleState, restore_state, save_state

__all__ = [
    "Finding",
    "RequiredTensors",
    "RequiredTensorsForTrial",
    "Rule",
    "RuleState",
    "invoke",
    "invoke_rule",
    "restore_state",
    "save_state",
]

_LATER = {
    # A function that only tells of findings, or reads a rules.json, needs no rule and no numpy.
    "Finding": "smdebug.rules.findings",
    "RequiredTensors": "smdebug.rules.req_tensors",
    "RequiredTensorsForTrial": "smdebug.rules.req_tensors",
    "Rule": "smdebug.rules.rule",
    # `python -m smdebug.rules.rule_invoker` must be the first to load that module.
    "invoke_rule": "smdebug.rules.rule_invoker",
    "invoke": "smdebug.rules.rule_invoker",
    "RuleState": "smdebug.rules.state",
    "restore_state": "smdebug.rules.state",
    "save_state": "smdebug.rules.state",
}


_MODULES = {"action", "generic", "rule_invoker", "state"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
