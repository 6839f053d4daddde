"""Our own form of an entry: the name of a rule, or an object with keys of its own."""

from __future__ import annotations

from typing import Any

from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import fields
from smdebug.service.rules_file.entry import Entry, as_list
from smdebug.service.rules_file.rule_actions import actions
from smdebug.service.rules_file.wording import shortened, suggestion

_KEYS = (
    "name",
    "rule",
    "parameters",
    "source",
    "other_trials",
    "start_step",
    "end_step",
    "actions",
    "repeat",
    "logging_level",
)


def read_entry(entry: Entry, content: Any) -> RuleConfiguration:
    """The rule in an entry of our own form."""
    content = entry.object({"rule": content} if isinstance(content, str) else content, "a rule")
    for key in content:
        if key not in _KEYS:
            meant = suggestion([key], _KEYS)
            raise entry.error(f"unknown key {shortened(str(key))!r}.{meant}")
    if content.get("rule") is None:
        raise entry.error("'rule' is missing: the name of a built-in rule or of your own class")
    rule = fields.rule_class(entry, content["rule"])
    parameters = entry.object(content.get("parameters") or {}, "parameters")
    others = fields.take_other_trials(parameters)
    return RuleConfiguration(
        name=fields.rule_name(entry, content.get("name", rule)),
        rule=rule,
        parameters=fields.parameters(entry, parameters),
        source=fields.source(entry, content.get("source")),
        other_trials=fields.other_trials(entry, [*as_list(content.get("other_trials")), *others]),
        start_step=fields.step_number(entry, "start_step", content.get("start_step")) or 0,
        end_step=fields.step_number(entry, "end_step", content.get("end_step")),
        actions=actions(entry, content.get("actions")),
        repeat=_repeat(entry, content.get("repeat")),
        logging_level=fields.logging_level(entry, content.get("logging_level")),
    )


def _repeat(entry: Entry, value: Any) -> str | None:
    if value not in (None, fields.EVERY_STEP):
        raise entry.error(f"repeat must be {fields.EVERY_STEP!r} or missing, not {shortened(repr(value))}")
    return None if value is None else fields.EVERY_STEP
