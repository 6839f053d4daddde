"""The file as a whole: its JSON, its form, its entries, and names that are unique."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from smdebug.exceptions import RulesFileError
from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import job_forms, our_form
from smdebug.service.rules_file.entry import Entry
from smdebug.service.rules_file.rule_actions import with_stop_as_action
from smdebug.service.rules_file.wording import kind_of, shortened, suggestion

VERSION = 1
MAX_BYTES = 256 << 10
MAX_RULES = 100

DEFAULT_RULES = "default_rules"
OURS, SAGEMAKER, TORNASOLE = "rules", "DebugRuleConfigurations", "rules_specification"
_READERS: Mapping[str, Callable[[Entry, Any], RuleConfiguration]] = {
    OURS: our_form.read_entry,
    SAGEMAKER: job_forms.read_sagemaker_entry,
    TORNASOLE: job_forms.read_tornasole_entry,
}


class RulesFile(NamedTuple):
    """The content of a rules.json: the valid rules, and what is wrong with the other entries."""

    rules: tuple[RuleConfiguration, ...] = ()
    problems: tuple[RulesFileError, ...] = ()
    notes: tuple[str, ...] = ()  # what was ignored, and why
    default_rules: bool = True  # whether the default rules judge the run as well

    def with_default(
        self, default: Callable[[], Iterable[RuleConfiguration]]
    ) -> tuple[RuleConfiguration, ...]:
        """Return the rules of the file and, unless it switches them off, those that `default` returns.

        A default rule that the file configures is evaluated once, as configured.
        """
        configured = {rule.rule for rule in self.rules} | {rule.name for rule in self.rules}
        added = default() if self.default_rules else ()
        return (*self.rules, *(rule for rule in added if rule.rule not in configured))

    @property
    def trouble(self) -> str:
        """All problems in one string, empty if there are none."""
        return "; ".join(map(str, self.problems))


def parse_rules(
    data: bytes | Mapping[str, Any] | Sequence[Any], *, file: str
) -> tuple[RuleConfiguration, ...]:
    """Return the rules in `data`; raise `RulesFileError` for the first invalid entry."""
    return valid_rules(data, file=file).rules


def valid_rules(data: bytes | Mapping[str, Any] | Sequence[Any], *, file: str) -> RulesFile:
    """Return the content of the file; raise `RulesFileError` for the first invalid entry."""
    read = read_rules(data, file=file)
    for problem in read.problems:
        raise problem
    return read


def read_rules(data: bytes | Mapping[str, Any] | Sequence[Any], *, file: str) -> RulesFile:
    """Return the valid rules in `data` and the problems of the other entries.

    Raise `RulesFileError` if the file as a whole is invalid.
    """
    content = _json_of(data, file)
    form, entries = _form_of(content, file)
    if len(entries) > MAX_RULES:
        raise RulesFileError(file, "", f"{len(entries)} rules, at most {MAX_RULES} are allowed")
    read: list[RuleConfiguration] = []
    problems: list[RulesFileError] = []
    notes: list[str] = []
    for number, listed in enumerate(entries):
        entry = Entry(file, f"{form}[{number}]", notes).named(listed)
        try:
            read.append(_read_entry(_READERS[form], entry, listed))
        except RulesFileError as problem:
            problems.append(problem)
    rules, clashes = _with_unique_names(read, form, file, notes)
    return RulesFile(rules, (*problems, *clashes), tuple(notes), _default_rules(content, file))


def in_our_form(rules: Iterable[RuleConfiguration], *, default_rules: bool = True) -> dict[str, Any]:
    """The rules as the content of a rules.json."""
    switch = {} if default_rules else {DEFAULT_RULES: False}
    return {"version": VERSION, **switch, OURS: [rule.to_dict() for rule in rules]}


def _default_rules(content: Any, file: str) -> bool:
    wanted = content.get(DEFAULT_RULES, True) if isinstance(content, Mapping) else True
    if not isinstance(wanted, bool):
        got = shortened(repr(wanted))
        raise RulesFileError(file, "", f"{DEFAULT_RULES} must be true or false, not {got}")
    return wanted


def _json_of(data: Any, file: str) -> Any:
    if not isinstance(data, bytes | bytearray | memoryview):
        return data
    if len(data) > MAX_BYTES:
        raise RulesFileError(file, "", f"{len(data)} bytes, at most {MAX_BYTES} are allowed")

    def refuse(text: str) -> Any:
        raise ValueError(f"{text} is not a JSON number")

    try:
        return json.loads(bytes(data), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise RulesFileError(file, "", f"it is not JSON: {shortened(str(error))}") from None


def _form_of(content: Any, file: str) -> tuple[str, list[Any]]:
    """The form of the file, and its entries."""
    if isinstance(content, Mapping):
        form = _form_of_object(content, file)
        entries = content[form]
    else:
        form = _form_of_list(content)
        entries = content
    if not isinstance(entries, list | tuple):
        raise RulesFileError(file, "", f"{form} must be a list, not {kind_of(entries)}")
    return form, list(entries)


def _form_of_object(content: Mapping[str, Any], file: str) -> str:
    forms = [form for form in _READERS if form in content]
    if len(forms) > 1:
        raise RulesFileError(file, "", f"it has both {' and '.join(forms)}: keep one of them")
    if not forms:
        keys = ", ".join(shortened(str(key)) for key in list(content)[:5]) or "no keys"
        meant = suggestion(list(content), _READERS)
        raise RulesFileError(file, "", f"{OURS}, {SAGEMAKER} or {TORNASOLE} expected, found {keys}.{meant}")
    form = forms[0]
    if form == OURS and content.get("version", VERSION) != VERSION:
        version = shortened(repr(content["version"]))
        raise RulesFileError(file, "", f"unknown version {version}; this library reads {VERSION}")
    return form


def _form_of_list(content: Any) -> str:
    first = content[0] if isinstance(content, list | tuple) and content else None
    if isinstance(first, Mapping):
        if "RuleConfigurationName" in first or "RuleParameters" in first:
            return SAGEMAKER
        if "RuleName" in first:
            return TORNASOLE
    return OURS


def _read_entry(
    read: Callable[[Entry, Any], RuleConfiguration], entry: Entry, content: Any
) -> RuleConfiguration:
    rule = read(entry, content)
    if rule.end_step is not None and rule.end_step <= rule.start_step:
        raise entry.error(
            f"no step lies in its range: it starts at {rule.start_step} and ends before {rule.end_step}"
        )
    return with_stop_as_action(entry, rule)


def _with_unique_names(
    read: list[RuleConfiguration], form: str, file: str, notes: list[str]
) -> tuple[tuple[RuleConfiguration, ...], list[RulesFileError]]:
    """Each rule once, and no two rules of the same name: statuses are reported by name."""
    names = [rule.name for rule in {rule.id: rule for rule in read}.values()]
    kept: dict[str, RuleConfiguration] = {}
    problems = []
    for rule in read:
        if rule.id in kept:
            notes.append(f"{rule.name} is listed twice with the same settings: evaluated once")
        elif names.count(rule.name) == 1 or form == TORNASOLE:
            # That form has no names: rules of the same class are distinguished by their settings.
            name = rule.name if names.count(rule.name) == 1 else f"{rule.name}-{rule.wants[:6]}"
            kept[rule.id] = replace(rule, name=name)
        elif any(other.name == rule.name for other in kept.values()):
            problem = "another rule with other settings has this name: give each its own name"
            problems.append(RulesFileError(file, f"{form} ({shortened(rule.name)})", problem))
        else:
            kept[rule.id] = rule
    return tuple(kept.values()), problems
