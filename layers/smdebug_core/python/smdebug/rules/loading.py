"""Load rule classes from a Python file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.rule import Rule


def load_rule_file(file: str) -> Any:
    """Run a rule's Python file as a module of its own, and return it."""
    from importlib.util import module_from_spec, spec_from_file_location

    path = Path(file).expanduser()
    if not path.is_file():
        raise SMDebugValueError(f"There is no file {file}")
    spec = spec_from_file_location(f"smdebug_rule_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SMDebugValueError(f"{file} is not a Python file: its name must end in .py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise SMDebugValueError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def rules_in(module: Any) -> dict[str, type[Rule]]:
    """Return the rules that a module itself defines, by name."""
    from inspect import isabstract

    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Rule)
        and value.__module__ == module.__name__
        and not isabstract(value)
    }


def rules_in_file(file: str) -> dict[str, type[Rule]]:
    """Return the rules that a Python file defines, by name; `SMDebugValueError` if it defines none."""
    rules = rules_in(load_rule_file(file))
    if not rules:
        raise SMDebugValueError(f"{file} defines no rule: a class derived from smdebug.rules.Rule")
    return rules


def find_in(rules: dict[str, type[Rule]], name: str) -> type[Rule] | None:
    """Return the rule of that name, in any case."""
    return next((rule for known, rule in rules.items() if known.lower() == name.lower()), None)
