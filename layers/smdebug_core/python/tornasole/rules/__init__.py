"""For code written against tornasole: rules live in `smdebug.rules`."""

from typing import Any

from smdebug.rules import RequiredTensors, Rule

__all__ = ["RequiredTensors", "Rule", "invoke", "invoke_rule"]


def __getattr__(name: str) -> Any:
    # Later, so that `python -m tornasole.rules.rule_invoker` is the first to load that module.
    if name in ("invoke", "invoke_rule"):
        import smdebug.rules

        return getattr(smdebug.rules, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
