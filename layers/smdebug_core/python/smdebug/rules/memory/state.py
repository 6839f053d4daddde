"""Save a rule's memory between steps as bytes: its own attributes, as far as they are plain data.

    state = save_state(rule)                       # after a step
    rule = MyRule(trial, threshold="0.5")          # later, in another process
    restore_state(rule, state)                     # continues where the first one stopped

The bytes are JSON, followed by one npz file if there are larger arrays. Reading them executes nothing,
even if they come from a stranger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from smdebug.exceptions import DamagedFile
from smdebug.logger import get_logger
from smdebug.rules.memory.state_decoding import DECODING_ERRORS, InvalidState, decode
from smdebug.rules.memory.state_encoding import NotPlainData, StateEncoder
from smdebug.rules.memory.state_format import STATE_LIMIT, size_error

__all__ = [
    "BASE_ATTRIBUTES",
    "STATE_LIMIT",
    "RuleState",
    "StatefulRule",
    "read_state",
    "restore_state",
    "save_state",
]

# Set by the base class in every process, so not part of the state.
BASE_ATTRIBUTES = frozenset(
    (
        "base_trial",
        "other_trials",
        "trials",
        "req_tensors",
        "logger",
        "rule_name",
        "report",
        "findings",
        "looked",
        "not_checked",
        "skipped",
        "checked_value",
        "_actions",
        "_step",
    )
)

_warned_about: set[tuple[str, str]] = set()


class StatefulRule(Protocol):
    """A rule, as far as its state is concerned."""

    @property
    def rule_name(self) -> str: ...

    @property
    def trials(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class RuleState:
    """The saved attributes of one rule; `left_out` names those that are not plain data."""

    data: bytes
    left_out: tuple[str, ...] = ()

    def __bytes__(self) -> bytes:
        return self.data

    def __len__(self) -> int:
        return len(self.data)


def save_state(rule: StatefulRule) -> RuleState:
    """Return the rule's attributes as bytes for `restore_state`.

    Saved are None, bool, int, float, str, bytes, lists, tuples, sets, dicts (also ordered, default and
    counting ones), deques, modes, numpy scalars and arrays, in any nesting; their types are restored.
    An attribute that holds anything else is left out, with one warning. `SMDebugValueError` above 64 MB.
    """
    encoder = StateEncoder(rule.rule_name)
    left_out = []
    for name, value in vars(rule).items():
        if name in BASE_ATTRIBUTES or any(value is trial for trial in rule.trials):
            continue
        if getattr(type(value), "comes_from_parameters", False):
            continue  # the constructor makes it again
        try:
            encoder.add(name, value)
        except NotPlainData as problem:
            left_out.append(name)
            _warn_once(rule, name, str(problem))
    return RuleState(encoder.encoded(), tuple(left_out))


def restore_state(rule: StatefulRule, state: RuleState | bytes | bytearray | memoryview) -> None:
    """Set the attributes that `save_state` saved on a new rule.

    `DamagedFile` if the bytes are not a saved state; the rule is then unchanged.
    """
    for name, value in read_state(state, rule_name=rule.rule_name).items():
        setattr(rule, name, value)


def read_state(state: RuleState | bytes | bytearray | memoryview, *, rule_name: str = "?") -> dict[str, Any]:
    """Return the attributes in a saved state, by name."""
    data = state.data if isinstance(state, RuleState) else bytes(state)
    if len(data) > STATE_LIMIT:
        raise size_error(rule_name, len(data))
    try:
        attributes = decode(data)
        if forbidden := BASE_ATTRIBUTES & set(attributes):
            raise InvalidState(f"it would replace {', '.join(sorted(forbidden))}")
        if any(name.startswith("__") for name in attributes):
            raise InvalidState("it would replace attributes that belong to Python")
    except DECODING_ERRORS as error:
        problem = str(error) or type(error).__name__
        raise DamagedFile(f"the saved state of rule {rule_name}", problem) from error
    return attributes


def _warn_once(rule: StatefulRule, attribute: str, problem: str) -> None:
    key = (f"{type(rule).__module__}.{type(rule).__qualname__}", attribute)
    if key not in _warned_about:
        _warned_about.add(key)
        get_logger().warning(
            "Rule %s: attribute %s is not kept between steps: it holds %s, which is not plain data",
            rule.rule_name,
            attribute,
            problem,
        )
