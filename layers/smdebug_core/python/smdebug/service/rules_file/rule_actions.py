"""The actions that an entry requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from smdebug.config.parsing import quoted_json
from smdebug.files.zoom_request import MOST_STEPS
from smdebug.service.records import EMAIL, SMS, STOP_TRAINING, ZOOM_IN, RuleConfiguration
from smdebug.service.rules_file.entry import MAX_NAME, MAX_VALUE, Entry
from smdebug.service.rules_file.fields import step_number
from smdebug.service.rules_file.wording import kind_of, shortened, suggestion

MAX_ACTIONS = 10
_OPTIONS = {
    STOP_TRAINING: ("training_job_prefix", "stop_at_step"),
    EMAIL: ("endpoint",),
    SMS: ("endpoint",),
    ZOOM_IN: ("tensor_regex", "steps"),
}
ACTIONS = tuple(_OPTIONS)

_STALLED_TRAINING = ("stalledtrainingrule", "stalledtraining")
_STOP_PARAMETERS = ("stop_training_on_fire", "training_job_name_prefix")


def actions(entry: Entry, value: Any) -> tuple[Mapping[str, Any], ...]:
    """The actions in `value`: a list, a single one, or JSON in a string."""
    requested = _decoded(entry, value)
    if isinstance(requested, Mapping):
        requested = [requested] if requested else []
    if not isinstance(requested, list | tuple):
        raise entry.error(f"actions must be a list of objects with a name, not {kind_of(requested)}")
    entry.limit(len(requested), "actions", MAX_ACTIONS)
    return tuple(_action(entry, action) for action in requested)


def _decoded(entry: Entry, value: Any) -> Any:
    if value is None or value == "":
        return []
    if not isinstance(value, str):
        return value
    if len(value) > MAX_VALUE:
        raise entry.error(f"the actions have {len(value)} characters, at most {MAX_VALUE} are allowed")
    try:
        return quoted_json(value)
    except (ValueError, RecursionError):
        raise entry.error(f"the actions are not valid JSON: {shortened(value)}") from None


def _action(entry: Entry, value: Any) -> dict[str, Any]:
    content = entry.object({"name": value} if isinstance(value, str) else value, "an action")
    options = {str(key).strip().lower(): option for key, option in content.items()}
    given = options.pop("name", None)
    name = str(given).strip().lower().replace("_", "").replace("-", "")
    if name not in _OPTIONS:
        raise entry.error(f"unknown action {shortened(repr(given))}; known actions: {', '.join(ACTIONS)}")
    action: dict[str, Any] = {"name": name}
    for key, option in options.items():
        if key not in _OPTIONS[name]:
            meant = suggestion([key], _OPTIONS[name])
            raise entry.error(f"the action {name} has no option {shortened(key)!r}.{meant}")
        if option is not None and option != "":
            action[key] = _option(entry, name, key, option)
    return action


def _option(entry: Entry, action: str, key: str, value: Any) -> Any:
    if key == "stop_at_step":
        return step_number(entry, key, value)
    if key == "steps":
        steps = step_number(entry, key, value)
        if steps is None or not 1 <= steps <= MOST_STEPS:
            raise entry.error(f"steps of the action {action} must be 1 to {MOST_STEPS}, not {steps}")
        return steps
    if key == "tensor_regex" and isinstance(value, str) and len(value) <= MAX_VALUE:
        return entry.text(key, value)
    if isinstance(value, str) and len(value) <= MAX_NAME:
        return entry.text(key, value.strip())
    raise entry.error(
        f"{key} of the action {action} must be a string of at most {MAX_NAME} characters, "
        f"not {shortened(repr(value))}"
    )


def with_stop_as_action(entry: Entry, rule: RuleConfiguration) -> RuleConfiguration:
    """Turn StalledTrainingRule's parameters that stop the training into the action.

    A deployed rule has no permission to stop anything itself.
    """
    requested = rule.parameters.get("stop_training_on_fire") in ("True", "true")
    prefix = rule.parameters.get("training_job_name_prefix")
    is_built_in = rule.rule.lower() in _STALLED_TRAINING and rule.source is None
    if not (is_built_in and requested and prefix):
        return rule
    entry.note("stop_training_on_fire becomes the action stoptraining")
    kept = {name: text for name, text in rule.parameters.items() if name not in _STOP_PARAMETERS}
    stop = {"name": STOP_TRAINING, "training_job_prefix": prefix}
    return replace(rule, parameters=kept, actions=actions(entry, [*rule.actions, stop]))
