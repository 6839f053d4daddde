"""The rules that watch a run, checks of their configuration, and the changes of a new rules.json."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.plain_text import nearest_of
from smdebug.rules import parameters as read
from smdebug.rules.rule_sets import DEFAULT, USUAL, USUAL_RULES
from smdebug.rules.rule_sets import default_rules as built_in_default_rules
from smdebug.service.records import BUILT_IN, RuleConfiguration, RuleRecord
from smdebug.service.rules_file import RulesFile, parse_rules, read_rules

if TYPE_CHECKING:
    from smdebug_rules.catalog import Parameter, RuleEntry

__all__ = [
    "Changes",
    "RulesFile",
    "check",
    "custom_group",
    "default_rules",
    "group_of",
    "parse_rules",
    "read_rules",
    "what_changed",
    "within_share",
]

MOST_DETACHED = 30
"""Rules that are remembered after they were detached, so that a record stays below the 400 KB of an item."""

_CUSTOM = "custom-"
MODES = ("TRAIN", "EVAL", "PREDICT", "GLOBAL")


def without_oldest(rules: Sequence[RuleRecord], wanted: Collection[str]) -> tuple[RuleRecord, ...]:
    """Return the rules without those that ended and were detached before the last `MOST_DETACHED`.

    Of a detached rule, no state is kept: should it be attached again, it starts again.
    """
    ended = [rule for rule in rules if rule.is_over and rule.id not in wanted]
    newest = sorted(ended, key=lambda rule: rule.changed_at)[-MOST_DETACHED:]
    kept, others = {rule.id for rule in newest}, {rule.id for rule in ended}
    return tuple(
        replace(rule, state=b"", state_key="") if rule.id in kept else rule
        for rule in rules
        if rule.id in kept or rule.id not in others
    )


class Changes(NamedTuple):
    """The changes in a new rules.json: rules that end, and rules that begin at the run's first step."""

    stopped: tuple[RuleConfiguration, ...]
    attached: tuple[RuleConfiguration, ...]


def default_rules(names: Iterable[str]) -> tuple[RuleConfiguration, ...]:
    """Return the rules that judge every run: each once, with default parameters.

    `default` and `usual` name the rules of these sets.
    """
    sets = {DEFAULT: tuple(built_in_default_rules()), USUAL: USUAL_RULES}
    stripped = [name.strip() for name in names]
    known = dict.fromkeys(rule for name in stripped for rule in sets.get(name, (name,)))
    return tuple(RuleConfiguration(name=name, rule=name) for name in known if name)


def what_changed(before: Iterable[RuleConfiguration], after: Iterable[RuleConfiguration]) -> Changes:
    """Return the difference between two sets of rules. A changed rule ends and begins again."""
    old, new = ({rule.id: rule for rule in rules} for rules in (before, after))
    return Changes(
        tuple(rule for known, rule in old.items() if known not in new),
        tuple(rule for known, rule in new.items() if known not in old),
    )


def group_of(configuration: RuleConfiguration, deployed: Collection[str] = ()) -> str:
    """Return the group that evaluates the rule: one for all built-in rules, one for each custom rule.

    `deployed` names the custom rules that have a function of their own. An unknown rule belongs to the
    built-in ones, where `check` reports the problem.
    """
    is_custom = configuration.source is not None or configuration.rule in deployed
    return custom_group(configuration.id) if is_custom else BUILT_IN


def within_share(
    rules: Iterable[RuleConfiguration], deployed: Collection[str], *, most: int
) -> tuple[tuple[RuleConfiguration, ...], str]:
    """Return the rules with only the first `most` custom ones, and what was left out.

    Each custom rule runs in a function of its own, beside the others of all runs.
    """
    rules = tuple(rules)
    custom = [rule for rule in rules if group_of(rule, deployed) != BUILT_IN]
    left_out = custom[most:]
    if not left_out:
        return rules, ""
    names = ", ".join(rule.name for rule in left_out[:5]) + (", …" if len(left_out) > 5 else "")
    return tuple(rule for rule in rules if rule not in left_out), (
        f"The run has {len(custom)} custom rules, and {most} are evaluated (setting custom_rules_per_run). "
        f"Left out: {names}. Check several things in one rule, or split the run's rules."
    )


def custom_group(rule_id: str) -> str:
    """Return the group of a custom rule, which is evaluated alone."""
    return f"{_CUSTOM}{rule_id}"


def is_custom(group: str) -> bool:
    """Whether the group evaluates a custom rule."""
    return group.startswith(_CUSTOM)


def check(
    configuration: RuleConfiguration,
    catalog: Mapping[str, RuleEntry],
    deployed: Collection[str] = (),
) -> str | None:
    """Return why the rule cannot be evaluated as configured, or None if it can.

    A custom rule cannot be checked before its code is run.
    """
    if group_of(configuration, deployed) != BUILT_IN:
        return None
    entry = _entry(configuration.rule, catalog)
    if entry is None:
        known = [*catalog, *deployed]
        nearest = nearest_of(configuration.rule, known)
        hint = f"Did you mean {nearest}?" if nearest else f"There are {', '.join(known)}."
        return (
            f"There is no rule {configuration.rule}. {hint} "
            "A rule of your own needs its source (s3://bucket/rule.py), or a file in rules/custom/."
        )
    problems = [
        *_unknown_parameters(configuration, entry),
        *_missing_parameters(configuration, entry),
        *_unreadable_parameters(configuration, entry),
    ]
    return " ".join(problems) or None


def _entry(rule: str, catalog: Mapping[str, RuleEntry]) -> RuleEntry | None:
    wanted = rule.lower()
    for entry in catalog.values():
        if wanted in (entry.name.lower(), *map(str.lower, entry.aliases)):
            return entry
    return None


def _names(parameter: Parameter) -> tuple[str, ...]:
    return (parameter.name, *parameter.aliases)


def _unknown_parameters(configuration: RuleConfiguration, entry: RuleEntry) -> Iterable[str]:
    known = [name for parameter in entry.parameters for name in _names(parameter)]
    for given in configuration.parameters:
        if given in known:
            continue
        if given in ("start_step", "end_step", "other_trials", "logging_level"):
            hint = f"The configuration itself has {given}, beside the parameters."
        elif nearest := nearest_of(given, known):
            hint = f"Did you mean {nearest!r}?"
        else:
            hint = f"It takes {', '.join(known)}." if known else "It takes none."
        yield f"{entry.name} takes no parameter {given!r}. {hint}"


def _missing_parameters(configuration: RuleConfiguration, entry: RuleEntry) -> Iterable[str]:
    for parameter in entry.parameters:
        if not parameter.required or any(n in configuration.parameters for n in _names(parameter)):
            continue
        if parameter.type == "trial":
            if not configuration.other_trials:
                yield f"{entry.name} needs another run to compare with: name it in other_trials."
        else:
            yield f"{entry.name} needs the parameter {parameter.name!r}: {parameter.sentence}."


def _unreadable_parameters(configuration: RuleConfiguration, entry: RuleEntry) -> Iterable[str]:
    for parameter in entry.parameters:
        for name in _names(parameter):
            value = configuration.parameters.get(name)
            if value is None or (parameter.default is None and not read.is_given(value)):
                continue
            try:
                _READERS.get(parameter.type, _as_it_is)(name, value)
            except SMDebugValueError as problem:
                yield f"{entry.name}: {str(problem).rstrip('.')}."


def _mode(name: str, value: Any) -> str:
    mode = str(value).strip().upper().removeprefix("MODES.")
    if mode not in MODES:
        raise SMDebugValueError(f"{name} must be one of {', '.join(MODES)}, not {value!r}")
    return mode


def _list(name: str, value: Any) -> list[str]:
    return (read.patterns if "regex" in name or name == "include" else read.strings)(name, value)


def _as_it_is(name: str, value: Any) -> Any:
    return value


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "float": read.number,
    "int": read.integer,
    "bool": read.boolean,
    "list": _list,
    "mode": _mode,
    "numbers": read.numbers,
}
