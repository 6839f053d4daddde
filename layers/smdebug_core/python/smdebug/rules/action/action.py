"""Parse a rule's actions, and run them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from smdebug.config.parsing import quoted_json, whole_number
from smdebug.exceptions import SMDebugValueError
from smdebug.files.zoom_request import STEPS
from smdebug.logger import get_logger
from smdebug.rules.action.message_action import MessageAction, problem_of_message
from smdebug.rules.action.outcome import ActionOutcome
from smdebug.rules.action.stop_training_action import StopTrainingAction, problem_of_prefix
from smdebug.rules.action.zoom_in_action import ZoomInAction
from smdebug.service import records

if TYPE_CHECKING:
    from smdebug.rules.findings import Finding
    from smdebug.trials import Trial

ALLOWED_ACTIONS = list(records.ACTIONS)

__all__ = [
    "ALLOWED_ACTIONS",
    "Action",
    "ActionOutcome",
    "Actions",
    "listed_actions",
    "parse_actions",
]


class WrongParameter(SMDebugValueError):
    """A parameter of an action is missing or wrong: correct it."""


class Action(Protocol):
    """Something to do when a rule fires."""

    def invoke(
        self, message: str = "", trial: Trial | None = None, findings: Iterable[Finding] = ()
    ) -> ActionOutcome: ...


class Actions:
    """All actions of one rule: `Actions([{"name": "email", "endpoint": "me@example.org"}], "MyRule")`.

    None or "" means no actions. A wrong parameter is an error; in JSON text, which jobs for the old library
    carry, it is logged, and that action is left out. Every outcome is logged, returned by `invoke`, and
    kept in `outcomes`.
    """

    def __init__(self, actions_str: Any = None, rule_name: str = ""):
        make = _made_or_left_out if isinstance(actions_str, str) else parse_actions
        self._actions = make(actions_str, rule_name)
        self.outcomes: list[ActionOutcome] = []

    def __len__(self) -> int:
        return len(self._actions)

    def invoke(
        self, message: str = "", trial: Trial | None = None, findings: Iterable[Finding] = ()
    ) -> list[ActionOutcome]:
        """Run every action on the findings in a run; a failing action is an outcome, not an exception."""
        found = tuple(findings)
        outcomes = [_invoked(action, message, trial, found) for action in self._actions]
        for outcome in outcomes:
            log = get_logger().info if outcome.done else get_logger().error
            log("Action %s: %s", outcome.action, outcome.message)
        self.outcomes += outcomes
        return outcomes


def parse_actions(configured: Any, rule_name: str) -> list[Action]:
    """Return the actions in JSON text (plain, or escaped as SageMaker's SDK does), an object or a list.

    `SMDebugValueError` describes the mistake. Names are accepted in any case.
    """
    return [_made(action, rule_name) for action in listed_actions(configured)]


def _made_or_left_out(text: str, rule_name: str) -> list[Action]:
    actions = []
    for configured in listed_actions(text):
        try:
            actions.append(_made(configured, rule_name))
        except WrongParameter as error:
            get_logger().warning("An action of %s is left out: %s", rule_name, error)
    return actions


def listed_actions(configured: Any) -> list[Any]:
    """Return the descriptions of the actions, which `parse_actions` takes, as a list."""
    parsed = _parsed(configured)
    if isinstance(parsed, Mapping):
        parsed = [parsed] if parsed else []
    if not isinstance(parsed, Sequence) or isinstance(parsed, str):
        raise SMDebugValueError(
            f"An action must be an object with a name, or a list of them, not {configured!r:.120}"
        )
    return list(parsed)


def _parsed(configured: Any) -> Any:
    if configured is None:
        return []
    if not isinstance(configured, str):
        return configured
    text = configured.strip()
    if not text:
        return []
    try:
        return quoted_json(text)
    except (ValueError, RecursionError) as error:
        raise SMDebugValueError(f"The actions are not valid JSON ({error}): {text:.120}") from error


def _made(configured: Any, rule_name: str) -> Action:
    if not isinstance(configured, Mapping):
        raise SMDebugValueError(f"An action must be an object with a name, not {configured!r:.120}")
    options = {str(key).strip().lower(): value for key, value in configured.items()}
    name = str(options.pop("name", "")).strip().lower()
    match name:
        case records.STOP_TRAINING:
            prefix = _text(options, "training_job_prefix")
            _refuse(problem_of_prefix(prefix))
            action: Action = StopTrainingAction(rule_name, prefix)
        case records.EMAIL | records.SMS:
            endpoint = _text(options, "endpoint")
            _refuse(problem_of_message(name, endpoint))
            action = MessageAction(rule_name, name, endpoint)
        case records.ZOOM_IN:
            action = _zoom_in(rule_name, options)
        case _:
            raise SMDebugValueError(
                f"There is no action {configured.get('name')!r}: choose from {', '.join(ALLOWED_ACTIONS)}"
            )
    _refuse(f"The action {name} takes no {', '.join(sorted(options))}" if options else None)
    return action


def _zoom_in(rule_name: str, options: dict[str, Any]) -> ZoomInAction:
    steps = options.pop("steps", None)
    regex = options.pop("tensor_regex", None)
    if not (regex is None or isinstance(regex, str)):
        raise SMDebugValueError(f"tensor_regex of the action zoomin must be text, not {regex!r}")
    count = STEPS if steps in (None, "") else whole_number(steps, "steps of the action zoomin")
    return ZoomInAction(rule_name, tensor_regex=regex or None, steps=count)


def _text(options: dict[str, Any], key: str) -> str:
    value = options.pop(key, None)
    return value.strip() if isinstance(value, str) else ""


def _refuse(problem: str | None) -> None:
    if problem is not None:
        raise WrongParameter(problem)


def _invoked(
    action: Action, message: str, trial: Trial | None, findings: tuple[Finding, ...]
) -> ActionOutcome:
    try:
        return action.invoke(message, trial, findings)
    except Exception as error:  # noqa: BLE001 - a failing action must not stop the rule
        return ActionOutcome(str(action), False, f"failed: {type(error).__name__}: {error}")
