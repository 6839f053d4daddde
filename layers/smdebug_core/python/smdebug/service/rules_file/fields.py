"""Checks for the fields of an entry, whichever form it has."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from smdebug.files.names import LAST_STEP
from smdebug.service.rules_file.entry import MAX_NAME, MAX_VALUE, Entry, as_list
from smdebug.service.rules_file.wording import kind_of, shortened

MAX_PARAMETERS = 100
MAX_OTHER_TRIALS = 20
EVERY_STEP = "every_step"
LOGGING_LEVELS = ("CRITICAL", "FATAL", "ERROR", "WARNING", "WARN", "INFO", "DEBUG", "NOTSET")

_OTHER_TRIALS = ("other_trial", "other_trials", "other-trials-paths", "other_trials_s3_input_paths")
_OTHER_TRIAL = re.compile(r"other_trial_?\d{1,3}", re.ASCII)  # the SDK numbers them
_ADDRESS = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")


def rule_name(entry: Entry, value: Any) -> str:
    """The name of a rule in a run. It becomes part of keys in the table and the bucket."""
    name = value.strip() if isinstance(value, str) else value
    if not isinstance(name, str) or not name or len(name) > MAX_NAME:
        raise entry.error(
            f"the name must be a string of 1 to {MAX_NAME} characters, not {shortened(repr(value))}"
        )
    if not name.isprintable() or set(name) & set("/\\#?*") or name.strip(".") == "":
        raise entry.error(f"the name {shortened(name)!r} contains forbidden characters (such as / \\ # ? *)")
    return name


def rule_class(entry: Entry, value: Any) -> str:
    """The name of the rule's class."""
    rule = value.strip() if isinstance(value, str) else ""
    if not rule.isascii() or not rule.isidentifier() or len(rule) > 128:
        raise entry.error(
            f"the rule must be the name of a class, such as VanishingGradient, not {shortened(repr(value))}"
        )
    return rule


def parameters(entry: Entry, value: Any) -> dict[str, str]:
    """The rule's parameters, each as a string."""
    given = entry.object(value or {}, "parameters")
    entry.limit(len(given), "parameters", MAX_PARAMETERS)
    checked = {}
    for key, content in given.items():
        if not key.isidentifier() or len(key) > MAX_NAME:
            raise entry.error(f"{shortened(key)!r} is not a valid parameter name")
        if content is not None:
            checked[key] = _parameter(entry, key, content)
    return checked


def _parameter(entry: Entry, key: str, value: Any) -> str:
    """The string that the rule's constructor receives, as over SageMaker's API."""
    if isinstance(value, float) and not math.isfinite(value):
        raise entry.error(f"parameter {key} must be finite, not {value}")
    if isinstance(value, bool | int | float | str):
        text = str(value)
    elif isinstance(value, list | tuple) and all(
        isinstance(item, bool | int | float | str) for item in value
    ):
        text = json.dumps(list(value))
    else:
        raise entry.error(
            f"parameter {key} must be a string, a number, true or false, or a list of these, "
            f"not {kind_of(value)}"
        )
    if len(text) > MAX_VALUE:
        raise entry.error(f"parameter {key} has {len(text)} characters, at most {MAX_VALUE} are allowed")
    return entry.text(f"parameter {key}", text)


def take_other_trials(given: dict[str, Any]) -> list[Any]:
    """Remove the other runs from the rule's parameters, and return them."""
    numbered = sorted((key for key in given if _OTHER_TRIAL.fullmatch(key)), key=_number_in)
    return [run for key in (*_OTHER_TRIALS, *numbered) for run in as_list(given.pop(key, None))]


def _number_in(key: str) -> int:
    return int("".join(filter(str.isdigit, key)))


def other_trials(entry: Entry, value: Any) -> tuple[str, ...]:
    """The addresses of other runs, without a slash at the end."""
    addresses = [address for address in as_list(value) if address != ""]
    entry.limit(len(addresses), "other trials", MAX_OTHER_TRIALS)
    runs = []
    for address in addresses:
        bucket, prefix = _s3_address(entry, "other_trials", address)
        runs.append(f"s3://{bucket}/{prefix}".rstrip("/"))
    return tuple(runs)


def source(entry: Entry, value: Any) -> str | None:
    """The Python file of a custom rule."""
    if value is None or value == "":
        return None
    bucket, key = _s3_address(entry, "source", value)
    if not key.endswith(".py"):
        raise entry.error(f"source must be a Python file (s3://bucket/rule.py), not {shortened(value)!r}")
    return f"s3://{bucket}/{key}"


def _s3_address(entry: Entry, what: str, value: Any) -> tuple[str, str]:
    match = _ADDRESS.fullmatch(value.strip()) if isinstance(value, str) else None
    key = match[2].rstrip("/") if match and match[2] else ""
    climbs = any(part in ("", ".", "..") for part in key.split("/") if key)
    if match is None or climbs or len(key.encode("utf-8", "replace")) > 1024:
        raise entry.error(f"{what} must be an address like s3://bucket/path, not {shortened(repr(value))}")
    return match[1], entry.text(what, key)


def step_number(entry: Entry, what: str, value: Any) -> int | None:
    """A step, or None if `value` is missing."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool | float) and not (isinstance(value, float) and value.is_integer()):
            raise ValueError
        step = int(value) if not isinstance(value, str) else int(value.strip()[:20])
    except (TypeError, ValueError, OverflowError):
        step = -1
    if not 0 <= step <= LAST_STEP:
        raise entry.error(f"{what} must be a step number, not {shortened(repr(value))}")
    return step


def logging_level(entry: Entry, value: Any) -> str | None:
    """The name of a logging level, in capitals."""
    if value is None or value == "":
        return None
    level = value.strip().upper() if isinstance(value, str) else ""
    if level not in LOGGING_LEVELS:
        raise entry.error(
            f"logging_level must be one of {', '.join(LOGGING_LEVELS)}, not {shortened(repr(value))}"
        )
    return level
