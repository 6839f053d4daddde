"""How long a run may be silent before somebody is woken to look at it."""

from __future__ import annotations

from collections.abc import Iterable

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.parameters import integer
from smdebug.service.records import RuleConfiguration

WATCHING = ("stalledtrainingrule", "stalledtraining")  # rules that are asked in a silence
DEFAULT = 1800


def watches_silence(rule: RuleConfiguration) -> bool:
    """Is the rule to be asked while nothing comes?"""
    return rule.rule.lower() in WATCHING and rule.source is None


def marks(
    rules: Iterable[RuleConfiguration], *, stall_timeout: float, silence_timeout: float
) -> list[float]:
    """After so many seconds of silence somebody looks: for a rule, to say so, to take it for the end."""
    wanted = {stall_timeout, silence_timeout, *(_threshold(rule) for rule in rules)}
    return sorted(mark for mark in wanted if 0 < mark <= silence_timeout)


def _threshold(rule: RuleConfiguration) -> float:
    if not watches_silence(rule):
        return 0.0
    try:
        return float(integer("threshold", rule.parameters.get("threshold", DEFAULT)))
    except SMDebugValueError:  # the rule itself will say so
        return 0.0
