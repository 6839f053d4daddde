"""The rules that a hook chooses for its run, in the form of `rules.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugTypeError
from smdebug.plain_text import did_you_mean
from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import RULES_FILE, in_our_form, parse_rules

__all__ = ["RULES_FILE", "rules_file_of"]

_FORMS = ("rules", "DebugRuleConfigurations", "rules_specification")


def rules_file_of(rules: Any) -> bytes:
    """Return the content of rules.json for names of rules, configurations, or a file in any of its forms.

    Raise `RulesFileError` for invalid rules.
    """
    if isinstance(rules, Mapping) and any(form in rules for form in _FORMS):
        parse_rules(rules, file="rules")
        return _as_json(rules)
    if isinstance(rules, str | Mapping | RuleConfiguration):
        rules = [rules]
    if isinstance(rules, bytes) or not isinstance(rules, Iterable):
        raise SMDebugTypeError(
            "rules must be a list of names of rules, of dictionaries such as "
            f'{{"rule": "AllZero"}} or of RuleConfigurations, not {rules!r:.100}'
        )
    entries = [rule.to_dict() if isinstance(rule, RuleConfiguration) else rule for rule in rules]
    return _as_json(in_our_form(parse_rules(entries, file="rules")))


def rules_without_tensors(rules_file: bytes, saved: Iterable[str]) -> list[str]:
    """Return a sentence for each built-in rule that reads collections of which the hook saves none."""
    from smdebug.rules.generic import catalog

    saved, sentences = set(saved), []
    if not saved.isdisjoint({CollectionKeys.ALL, CollectionKeys.DEFAULT}):
        return []  # patterns select tensors, which may be the right ones
    built_in = {name.lower(): entry for name, entry in catalog().items()}
    for rule in parse_rules(rules_file, file=RULES_FILE):
        entry = built_in.get(rule.rule.lower())
        selects = {"tensor_regex", "collection_names"}.intersection(rule.parameters)
        if entry is None or rule.source is not None or selects or not entry.collections:
            continue
        if saved.isdisjoint(entry.collections):
            needed = " or ".join(entry.collections)
            sentences.append(
                f"Rule {rule.name} will find nothing to check: it reads the collection {needed}, which this "
                f'hook does not save. Add include_collections=["{entry.collections[0]}"]'
            )
    return sentences


def unknown_rules(rules: Any, file: str = "rules") -> list[str]:
    """Return a sentence for each rule whose name resembles that of a built-in one, and that has no source.

    A deployed debugger may have rules of its own, so a name without resemblance is left to it.
    """
    from smdebug.rules.generic import every_rule

    built_in = every_rule()
    known = {name.lower() for entry in built_in.values() for name in (entry.name, *entry.aliases)}
    unknown = [
        rule.rule
        for rule in parse_rules(rules, file=file)
        if rule.source is None and rule.rule.lower() not in known
    ]
    meant = [(name, did_you_mean(name, built_in)) for name in unknown]
    return [f"There is no rule {name}.{hint}" for name, hint in meant if hint]


def _as_json(content: Any) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
