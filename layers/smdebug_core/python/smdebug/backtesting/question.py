"""What a backtest asks of each run: the rules, an older version of them, and the conditions on runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import smdebug
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.construction import accepted_parameters, suggestion
from smdebug.rules.loading import find_in, rules_in_file
from smdebug.rules.rule_sets import SET_NAMES
from smdebug.runs.conditions import Condition
from smdebug.runs.evaluation.rule_steps import rule_class

TIMEOUT = 600.0
"""Seconds that the rules may take on one run."""
FORMAT = 1
"""Changes when rows of an older version no longer count."""
_RULE_PACKAGES = ("smdebug_rules", "smdebug_default_rules", "smdebug.rules")

RuleEntry = Mapping[str, Any]
"""A rule as rules.json has it: `rule` and `parameters`."""


@dataclass(frozen=True)
class Question:
    """The rules to evaluate on each run, and which runs count."""

    rules: tuple[RuleEntry | str, ...]
    """Each an entry with its parameters, or the name of a set."""
    file: str | None = None
    """The Python file that defines some of them."""
    against: str | None = None
    """An older version of that file."""
    where: tuple[Condition, ...] = ()
    since: float | None = None
    """The time, in seconds of the epoch, from which on a run must have saved a step."""
    timeout: float = TIMEOUT
    """Seconds that the rules may take on one run."""
    series: tuple[str, ...] = ()
    """In place of verdicts: the columns to read of each run, for expressions."""
    bundles: str = ""
    """The place of the bundles through which runs are read; by default there are none."""
    keeps_bundles: bool = False
    """Whether bundles are written for the next backtest."""

    @property
    def selects(self) -> bool:
        """Whether some runs may be left out."""
        return bool(self.where) or self.since is not None

    def digest(self) -> str:
        """Return what identifies the verdicts: the code of the rules and their parameters.

        Left out are the conditions and the timeout, which change only of which runs there are verdicts,
        bundles, which change nothing, and modules that a rule's file imports.
        """
        content = {
            "format": FORMAT,
            "version": smdebug.__version__,
            "rules": list(self.rules),
            "files": [None if file is None else _digest_of(Path(file)) for file in (self.file, self.against)],
            "built_in": _digest_of_built_in_rules(),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, for another process."""
        return {**vars(self), "rules": list(self.rules), "where": [list(each) for each in self.where]}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Question:
        where = tuple(Condition(*each) for each in payload["where"])
        return cls(
            **{
                **payload,
                "rules": tuple(payload["rules"]),
                "where": where,
                "series": tuple(payload["series"]),
            }
        )


def refuse_wrong_rules(question: Question) -> None:
    """Raise `SMDebugValueError` for a rule that no run could be judged by: no such rule, or parameter."""
    _refuse_missing_before(question)
    for entry in question.rules:
        if isinstance(entry, str) and entry.lower() in SET_NAMES:
            continue
        name, parameters = (entry, {}) if isinstance(entry, str) else (entry["rule"], entry["parameters"])
        for file in dict.fromkeys((question.file, question.against or question.file)):
            found = rule_class(name, file)
            accepted = accepted_parameters(found)
            for needed in accepted.required:
                if needed not in parameters:
                    raise SMDebugValueError(_lacks(found.__name__, needed, accepted.settable))
            for parameter in () if accepted.anything else parameters:
                if parameter not in accepted.settable:
                    raise SMDebugValueError(
                        f"{found.__name__} takes no parameter {parameter!r}"
                        f"{suggestion(parameter, accepted.settable)}"
                    )


def _lacks(rule: str, parameter: str, settable: Sequence[str]) -> str:
    if parameter not in settable:
        return f"{rule} needs {parameter}, which a backtest has not: `smdebug evaluate` takes --other-run"
    return f"{rule} needs {parameter}: --set {parameter}=VALUE"


def _refuse_missing_before(question: Question) -> None:
    """Refuse an older version that lacks a rule: a built-in rule of that name is another one."""
    if question.file is None or question.against is None:
        return
    now, before = rules_in_file(question.file), rules_in_file(question.against)
    for name in names_of(question.rules):
        if find_in(now, name) and not find_in(before, name):
            raise SMDebugValueError(f"{question.against} defines no rule {name!r}, but {', '.join(before)}")


def names_of(rules: Sequence[RuleEntry | str]) -> list[str]:
    """Return the names of rules and sets."""
    return [entry if isinstance(entry, str) else entry["rule"] for entry in rules]


def _digest_of(file: Path) -> str:
    return hashlib.sha256(file.expanduser().read_bytes()).hexdigest()


@cache
def _digest_of_built_in_rules() -> str:
    digest = hashlib.sha256()
    for name in _RULE_PACKAGES:
        for folder in import_module(name).__path__:
            for file in sorted(Path(folder).rglob("*.py")):
                digest.update(file.read_bytes())
    return digest.hexdigest()
