"""Changing which rules watch a run: the `rules.json` beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from smdebug.exceptions import ObjectMissing, RuleUnknown
from smdebug.plain_text import nearest_of
from smdebug.service.records import RequestedRule, RuleConfiguration
from smdebug.service.rules_file import (
    RULES_FILE,
    in_our_form,
    parse_rules,
    valid_rules,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from smdebug.storage import Storage

Rules = tuple[RuleConfiguration, ...]
RequestedRules = RequestedRule | Sequence[RequestedRule]


class AttachedRules:
    """The rules of one run: those of its file, and the default rules, which `default` returns.

    A change writes all of them to the file, which then switches the default rules off.
    """

    def __init__(self, location: str, storage: Storage, default: Callable[[], Rules]):
        self._location = location
        self._storage = storage
        self._default = default

    def read(self) -> Rules:
        """Return all rules that judge the run."""
        try:
            data = self._storage.read(RULES_FILE)
        except ObjectMissing:
            return self._default()
        return valid_rules(data, file=self._file).with_default(self._default)

    def add(self, requested: RequestedRules) -> Rules:
        """Add these rules, replacing those of the same name; return all."""
        added = configurations(requested)
        names = {rule.name for rule in added}
        kept = (rule for rule in self.read() if rule.name not in names)
        return self._write((*kept, *added))

    def remove(self, names: str | Iterable[str]) -> Rules:
        """Remove the rules of these names; return the others."""
        removed = {names} if isinstance(names, str) else set(names)
        rules = self.read()
        known = tuple(rule.name for rule in rules)
        for name in sorted(removed - set(known)):
            raise RuleUnknown(name, self._location, known, nearest_of(name, known))
        return self._write(rule for rule in rules if rule.name not in removed)

    def replace(self, requested: RequestedRules) -> Rules:
        """Have these rules and no others judge the run."""
        return self._write(configurations(requested))

    @property
    def _file(self) -> str:
        return f"{self._location}/{RULES_FILE}"

    def _write(self, rules: Iterable[RuleConfiguration]) -> Rules:
        content = in_our_form(rules, default_rules=False)
        data = (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
        written = parse_rules(data, file=self._file)
        self._storage.write(RULES_FILE, data)
        return written


def configurations(requested: RequestedRules) -> Rules:
    """The configurations of the requested rules, or of a whole rules.json."""
    if isinstance(requested, Mapping) and not {"rule", "RuleName", "RuleParameters"} & set(requested):
        return parse_rules(requested, file="the rules given")
    if isinstance(requested, str | RuleConfiguration | Mapping):
        requested = [requested]
    entries = [rule.to_dict() if isinstance(rule, RuleConfiguration) else rule for rule in requested]
    return parse_rules(entries, file="the rules given")
