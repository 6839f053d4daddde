"""Conditions on the configuration of runs, as in `--where "lr<1e-3"`. They are parsed, never executed."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.plain_text import nearest_of

_FORM = re.compile(r"\s*([^\s<>=!~]+)\s*(<=|>=|!=|==|<|>|=|~)\s*(.*?)\s*", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LONGEST = 1000
_ROUNDED = 1.2e-7
_MEASURED: Mapping[str, tuple[str, ...]] = {"lr": ("learning_rate",)}
_TRUTHS = {"true": True, "false": False}


class Condition(NamedTuple):
    """A name, a comparison, and the value to compare with."""

    name: str
    comparison: str
    value: str

    def matches(self, facts: Mapping[str, Any]) -> bool:
        """Return whether a run with these facts satisfies it. A run without the name satisfies only `!=`."""
        key = key_of(self.name, facts)
        if key is None:
            return self.comparison == "!="
        found = facts[key]
        if isinstance(found, list | tuple):
            results = [self._holds(item) for item in found]
            return all(results) if self.comparison == "!=" else any(results)
        return self._holds(found)

    def _holds(self, found: Any) -> bool:
        if self.comparison == "~":
            return self.value.casefold() in _text(found).casefold()
        if self.comparison in _OPERATORS:
            ours, theirs = _number(found), _number(self.value)
            if ours is None or theirs is None:
                return False
            return bool(_OPERATORS[self.comparison](ours, theirs))
        is_same = _is_equal(found, self.value)
        return not is_same if self.comparison == "!=" else is_same


def parse_condition(text: str) -> Condition:
    """Return the condition that the text describes; raise `SMDebugValueError` with its form if it is none."""
    match = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise SMDebugValueError(
            f"{text[:100]!r} is not a condition. Write a name, one of < <= > >= = != ~ and a value: "
            '"lr<1e-3", "optimizer=adam", "tags=baseline", "command~--amp"'
        )
    name, comparison, value = match.groups()
    if comparison in _OPERATORS and _number(value) is None:
        if not value.strip():
            raise SMDebugValueError(f'{text[:100]!r} lacks a value; write for example "lr<1e-3"')
        raise SMDebugValueError(
            f"{text[:100]!r} compares with {value!r}, which is not a number. Use = or != for text"
        )
    return Condition(name, "=" if comparison == "==" else comparison, _unquoted(value))


def key_of(name: str, facts: Mapping[str, Any]) -> str | None:
    """Return the full name that `name` means: itself, or the one name that ends with `.name`.

    `lr` is also `learning_rate`, which is measured where no configuration names it.
    """
    for known in (name, *_MEASURED.get(name.lower(), ())):
        if known in facts:
            return known
        lower = known.lower()
        found = [key for key in facts if key.lower() == lower or key.lower().endswith(f".{lower}")]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def refuse_unknown_names(conditions: Iterable[Condition], of_runs: Iterable[Mapping[str, Any]]) -> None:
    """Raise `SMDebugValueError` for a name that no run has: it is probably misspelt."""
    facts = list(of_runs)
    if not facts:
        return
    for condition in conditions:
        if any(key_of(condition.name, run_facts) is not None for run_facts in facts):
            continue
        known = sorted({key for run_facts in facts for key in run_facts})
        last = condition.name.rpartition(".")[2].lower()
        several = [key for key in known if key.lower().endswith(f".{last}")]
        if len(several) > 1:
            hint = f" It may be one of {', '.join(several[:5])}: give the full name."
        else:
            near = nearest_of(condition.name, known)
            hint = f" Did you mean {near}?" if near else f" Known names: {', '.join(known[:20])}."
        raise SMDebugValueError(f"No run has a value named {condition.name}.{hint}")


def _is_equal(found: Any, value: str) -> bool:
    if isinstance(found, bool):
        return _TRUTHS.get(value.casefold()) is found
    ours, theirs = _number(found), _number(value)
    if ours is not None and theirs is not None:
        # A rate of 0.001 that was measured as float32 is 0.0010000000475.
        are_whole = ours.is_integer() and theirs.is_integer()
        return math.isclose(ours, theirs, rel_tol=0.0 if are_whole else _ROUNDED)
    return _text(found).casefold() == value.casefold()


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


def _unquoted(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value
