"""Making a rule from its class and its parameters, which may come as text from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.exceptions import SMDebugError, SMDebugValueError

if TYPE_CHECKING:
    from smdebug.rules.rule import Rule

GIVEN = frozenset(("self", "base_trial", "other_trials", "other_trial"))


class Accepted(NamedTuple):
    """The parameters that a rule takes beside its trial."""

    names: list[str]
    required: list[str]
    anything: bool


def accepted_by(rule_class: type[Rule]) -> Accepted:
    """What the rule takes, as its constructor says."""
    parameters = list(signature(rule_class.__init__).parameters.values())[2:]
    named = [
        one
        for one in parameters
        if one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    return Accepted(
        [one.name for one in named],
        [one.name for one in named if one.default is Parameter.empty],
        any(one.kind is Parameter.VAR_KEYWORD for one in parameters),
    )


def make_rule(
    rule_class: type[Rule],
    trial: Any,
    parameters: Mapping[str, Any],
    other_trials: Sequence[Any] | Callable[[], Sequence[Any]] = (),
    *,
    named: Callable[[str], str] = repr,
) -> Rule:
    """The rule, asked with these parameters; `SMDebugValueError` says which one is missing or wrong.

    The trials may be functions that open them.
    """
    accepted = accepted_by(rule_class)
    arguments: dict[str, Any] = dict(parameters)
    others = list(other_trials() if callable(other_trials) else other_trials)
    if others:
        takes = next(
            (one for one in ("other_trials", "other_trial") if one in accepted.names), None
        )
        if takes is None and not accepted.anything:
            raise SMDebugValueError(f"{rule_class.__name__} looks at no other trials")
        arguments[takes or "other_trials"] = others[0] if takes == "other_trial" else others
    missing = [name for name in accepted.required if name not in arguments]
    if missing:
        raise SMDebugValueError(f"{rule_class.__name__} needs {named(missing[0])}")
    unknown = [name for name in arguments if name not in accepted.names]
    if unknown and not accepted.anything:
        choices = [one for one in accepted.names if one not in GIVEN]
        raise SMDebugValueError(
            f"{rule_class.__name__} takes no parameter {named(unknown[0])}"
            f"{nearest_told(unknown[0], choices)}"
        )
    try:
        return rule_class(trial() if callable(trial) else trial, **arguments)
    except SMDebugError:
        raise
    except (TypeError, ValueError) as error:
        raise SMDebugValueError(f"{rule_class.__name__} cannot be made: {error}") from error


def nearest_told(name: str, choices: Iterable[str]) -> str:
    """The end of a sentence that says what there is instead."""
    from difflib import get_close_matches

    choices = list(choices)
    by_lower = {choice.lower(): choice for choice in choices}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    if close:
        return f". Did you mean {by_lower[close[0]]}?"
    return f": there are {', '.join(choices)}" if choices else ""
