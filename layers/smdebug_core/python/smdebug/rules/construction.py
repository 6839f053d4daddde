"""Construct a rule from its class and its parameters, which may be text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.plain_text import did_you_mean

if TYPE_CHECKING:
    from smdebug.rules.rule import Rule

# Passed by the code that constructs the rule, and so not among its parameters.
TRIAL_PARAMETERS = frozenset(("self", "base_trial", "other_trials", "other_trial"))


class AcceptedParameters(NamedTuple):
    """The parameters that a rule accepts beside its trial."""

    names: list[str]
    required: list[str]
    anything: bool

    @property
    def settable(self) -> list[str]:
        """The names of those that a configuration can set."""
        return [name for name in self.names if name not in TRIAL_PARAMETERS]


def accepted_parameters(rule_class: type[Rule]) -> AcceptedParameters:
    """Return the parameters in the signature of the rule's constructor."""
    parameters = list(signature(rule_class.__init__).parameters.values())[2:]
    named = [
        parameter
        for parameter in parameters
        if parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    return AcceptedParameters(
        [parameter.name for parameter in named],
        [parameter.name for parameter in named if parameter.default is Parameter.empty],
        any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters),
    )


def make_rule(
    rule_class: type[Rule],
    trial: Any,
    parameters: Mapping[str, Any],
    other_trials: Sequence[Any] | Callable[[], Sequence[Any]] = (),
    *,
    named: Callable[[str], str] = repr,
) -> Rule:
    """Return the rule with these parameters; `SMDebugValueError` names a missing or invalid one.

    The trials may be functions that open them.
    """
    accepted = accepted_parameters(rule_class)
    arguments: dict[str, Any] = dict(parameters)
    others = list(other_trials() if callable(other_trials) else other_trials)
    if others:
        name = next((n for n in ("other_trials", "other_trial") if n in accepted.names), None)
        if name is None and not accepted.anything:
            raise SMDebugValueError(f"{rule_class.__name__} takes no other trials")
        arguments[name or "other_trials"] = others[0] if name == "other_trial" else others
    missing = [name for name in accepted.required if name not in arguments]
    if missing:
        raise SMDebugValueError(f"{rule_class.__name__} needs {named(missing[0])}")
    unknown = [name for name in arguments if name not in accepted.names]
    if unknown and not accepted.anything:
        raise SMDebugValueError(
            f"{rule_class.__name__} takes no parameter {named(unknown[0])}"
            f"{suggestion(unknown[0], accepted.settable)}"
        )
    try:
        return rule_class(trial() if callable(trial) else trial, **arguments)
    except SMDebugError:
        raise
    except (TypeError, ValueError) as error:
        raise SMDebugValueError(f"{rule_class.__name__} cannot be created: {error}") from error


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: the closest choice, or all of them."""
    choices = list(choices)
    if hint := did_you_mean(name, choices):
        return f".{hint}"
    return f": there are {', '.join(choices)}" if choices else ""
