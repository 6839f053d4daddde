"""Rules: write one, invoke it over a run, read its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.rules.evaluations import invoke, invoke_rule
    from smdebug.rules.findings import Finding
    from smdebug.rules.memory.state import RuleState, restore_state, save_state
    from smdebug.rules.req_tensors import RequiredTensors, RequiredTensorsForTrial
    from smdebug.rules.rule import Rule

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

_LAZY = {
    # A function that only handles findings, or reads a rules.json, needs neither Rule nor numpy.
    "Finding": "smdebug.rules.findings",
    "RequiredTensors": "smdebug.rules.req_tensors",
    "RequiredTensorsForTrial": "smdebug.rules.req_tensors",
    "Rule": "smdebug.rules.rule",
    "invoke_rule": "smdebug.rules.evaluations",
    "invoke": "smdebug.rules.evaluations",
    "RuleState": "smdebug.rules.memory.state",
    "restore_state": "smdebug.rules.memory.state",
    "save_state": "smdebug.rules.memory.state",
}


_MODULES = {"action", "generic", "rule_invoker", "state"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
