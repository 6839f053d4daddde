"""Problems of a configuration that show before a script runs: unknown names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config import json_config
from smdebug.config.constants import CONFIG_RULES_KEY
from smdebug.config.unknown_names import unknown_names
from smdebug.exceptions import SMDebugValueError
from smdebug.saving.recording.rules_of_run import unknown_rules


def check_configuration(described: Mapping[str, Any]) -> None:
    """Raise `SMDebugError` if a hook would refuse something in this JSON, or if a name in it is unknown."""
    json_config.check_hook_config(described)
    problems = [*unknown_names(described), *_unknown_rules(described)]
    if problems:
        raise SMDebugValueError(" ".join(problems))


def check_file(path: str) -> None:
    """Raise `SMDebugError`, or `OSError`, if that JSON file is not a configuration of a hook."""
    check_configuration(json_config.get_json_config_as_dict(path))


def _unknown_rules(described: Mapping[str, Any]) -> list[str]:
    rules = described.get(CONFIG_RULES_KEY)
    return unknown_rules({CONFIG_RULES_KEY: rules}, CONFIG_RULES_KEY) if rules else []
