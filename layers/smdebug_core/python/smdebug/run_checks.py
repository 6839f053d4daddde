"""Problems of a configuration that show before a script runs: unknown names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config import json_config
from smdebug.config.constants import CONFIG_RULES_KEY
from smdebug.config.unknown_names import did_you_mean, unknown_names
from smdebug.exceptions import SMDebugValueError


def check_configuration(described: Mapping[str, Any]) -> None:
    """Raise `SMDebugError` if a hook with this JSON would refuse something, or not know a name in it."""
    json_config.check_hook_config(described)
    problems = [*unknown_names(described), *_unknown_rules(described)]
    if problems:
        raise SMDebugValueError("\n".join(problems))


def check_file(path: str) -> None:
    """Raise `SMDebugError`, or `OSError`, if that JSON file is no configuration of a hook."""
    check_configuration(json_config.get_json_config_as_dict(path))


def _unknown_rules(described: Mapping[str, Any]) -> list[str]:
    rules = described.get(CONFIG_RULES_KEY)
    if not rules:
        return []
    from smdebug.rules.generic import every_rule
    from smdebug.service.rules_file import parse_rules

    built_in = every_rule()
    known = {name.lower() for entry in built_in.values() for name in (entry.name, *entry.aliases)}
    unknown = [
        rule.rule
        for rule in parse_rules({CONFIG_RULES_KEY: rules}, file=CONFIG_RULES_KEY)
        if rule.source is None and rule.rule.lower() not in known
    ]
    # A deployed debugger may have rules of its own, so a name without resemblance is left to it.
    meant = [(name, did_you_mean(name, built_in)) for name in unknown]
    return [f"There is no rule {name}.{hint}" for name, hint in meant if hint]
