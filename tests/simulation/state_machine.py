"""Runs the state machine that is deployed, `infra/workflow.asl.json`, as far as it uses the language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

DEFINITION = Path(__file__).parents[2] / "infra" / "workflow.asl.json"


class TaskFailed(Exception):
    """A task ended with this error, by its name as Step Functions sees it."""

    def __init__(self, error: str):
        super().__init__(error)
        self.error = error


class Surroundings(Protocol):
    """What an execution needs from its surroundings."""

    def invoke(self, function: str, payload: Any) -> Any: ...
    def send(self, message: Any, delay: float) -> None: ...
    def put_events(self, entries: list[Mapping[str, Any]]) -> None: ...
    def sleep(self, seconds: float) -> None: ...
    def now(self) -> float: ...


@cache
def definition() -> dict[str, Any]:
    machine: dict[str, Any] = json.loads(DEFINITION.read_text(encoding="utf-8"))
    return machine


def execute(given: Any, around: Surroundings) -> str:
    """From the input to the last state's type: `Succeed` or `Fail`."""
    return _run(definition(), given, {}, around)[1]


def _run(
    machine: Mapping[str, Any], given: Any, context: Mapping[str, Any], around: Surroundings
) -> tuple[Any, str]:
    name = machine["StartAt"]
    while True:
        state = machine["States"][name]
        entered = datetime.fromtimestamp(around.now(), UTC).isoformat().replace("+00:00", "Z")
        here = {**context, "State": {"EnteredTime": entered}}
        try:
            given, following = _HANDLED[state["Type"]](state, given, here, around)
        except TaskFailed as failure:
            caught = next((clause for clause in state.get("Catch", ()) if _is_meant(clause, failure)), None)
            if caught is None:
                raise
            given, following = (
                _put(given, caught.get("ResultPath", "$"), {"Error": failure.error}),
                caught["Next"],
            )
        if following is None:
            return given, state["Type"]
        name = following


def _task(state: Any, given: Any, context: Any, around: Surroundings) -> tuple[Any, str | None]:
    parameters = _filled(state["Parameters"], given, context)
    attempts: dict[int, int] = {}
    while True:
        try:
            result = _do(state["Resource"].rpartition(":::")[2], parameters, around)
            break
        except TaskFailed as failure:
            number, retry = next(
                (
                    (n, clause)
                    for n, clause in enumerate(state.get("Retry", ()))
                    if _is_meant(clause, failure)
                ),
                (0, None),
            )
            attempts[number] = attempts.get(number, 0) + 1
            if retry is None or attempts[number] > retry["MaxAttempts"]:
                raise
            wait = retry["IntervalSeconds"] * retry["BackoffRate"] ** (attempts[number] - 1)
            around.sleep(min(wait, retry.get("MaxDelaySeconds", wait)))
    if "ResultSelector" in state:
        result = _filled(state["ResultSelector"], result, context)
    return _put(given, state.get("ResultPath", "$"), result), _next(state)


def _do(resource: str, parameters: Any, around: Surroundings) -> Any:
    match resource:
        case "lambda:invoke":
            function = re.sub(r"^\$\{(.*)\}$", r"\1", parameters["FunctionName"])
            return {"Payload": around.invoke(function, parameters["Payload"])}
        case "sqs:sendMessage":
            return around.send(parameters["MessageBody"], parameters["DelaySeconds"])
        case "events:putEvents":
            return around.put_events(parameters["Entries"])
    raise NotImplementedError(resource)


def _map(state: Any, given: Any, context: Any, around: Surroundings) -> tuple[Any, str | None]:
    results = []
    for item in _at(state["ItemsPath"], given, context):
        inside = {"Map": {"Item": {"Value": item}}}
        selected = _filled(state["ItemSelector"], given, inside)
        results.append(_run(state["ItemProcessor"], selected, inside, around)[0])
    return _put(given, state.get("ResultPath", "$"), results), _next(state)


def _choice(state: Any, given: Any, context: Any, around: Surroundings) -> tuple[Any, str | None]:
    for choice in state["Choices"]:
        if all(_holds(part, given, context) for part in choice.get("And", [choice])):
            return given, choice["Next"]
    return given, state["Default"]


def _pass(state: Any, given: Any, context: Any, around: Surroundings) -> tuple[Any, str | None]:
    result = _at(state.get("InputPath", "$"), given, context)
    if "Parameters" in state:
        result = _filled(state["Parameters"], result, context)
    result = state.get("Result", result)
    return _put(given, state.get("ResultPath", "$"), result), _next(state)


def _end(state: Any, given: Any, context: Any, around: Surroundings) -> tuple[Any, str | None]:
    return given, None


_HANDLED: Mapping[str, Callable[..., tuple[Any, str | None]]] = {
    "Task": _task,
    "Map": _map,
    "Choice": _choice,
    "Pass": _pass,
    "Succeed": _end,
    "Fail": _end,
}


def _next(state: Any) -> str | None:
    following: str | None = state.get("Next")
    assert (following is None) == bool(state.get("End")), state
    return following


def _holds(condition: Any, given: Any, context: Any) -> bool:
    try:
        value = _at(condition["Variable"], given, context)
    except LookupError:
        return not condition.get("IsPresent", True)
    match condition:
        case {"IsPresent": wanted}:
            return bool(wanted)
        case {"IsString": wanted}:
            return isinstance(value, str) is wanted
        case {"StringEquals": wanted} | {"BooleanEquals": wanted}:
            return bool(value == wanted)
        case {"TimestampGreaterThanEqualsPath": path}:
            return _time(value) >= _time(_at(path, given, context))
    raise NotImplementedError(condition)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _filled(template: Any, given: Any, context: Any) -> Any:
    if not isinstance(template, Mapping):
        return template
    return {
        key.removesuffix(".$"): _at(value, given, context)
        if key.endswith(".$")
        else _filled(value, given, context)
        for key, value in template.items()
    }


def _at(path: str, given: Any, context: Any) -> Any:
    if path.startswith("States.ArrayContains("):
        where, wanted = re.fullmatch(r"States\.ArrayContains\((.*), '(.*)'\)", path).groups()  # type: ignore[union-attr]
        return wanted in _at(where, given, context)
    value = context if path.startswith("$$") else given
    for step in _steps(path):
        value = value[step]
    return value


@cache
def _steps(path: str) -> tuple[str | int, ...]:
    words = re.findall(r"[^.\[\]]+", path.lstrip("$"))
    return tuple(int(word) if word.isdigit() else word for word in words)


def _put(given: Any, path: str | None, result: Any) -> Any:
    if path is None:
        return given
    return _put_in(given, _steps(path), result)


def _put_in(given: Any, path: tuple[str | int, ...], result: Any) -> Any:
    if not path:
        return result
    return {**given, path[0]: _put_in(given.get(path[0], {}), path[1:], result)}


def _is_meant(clause: Any, failure: TaskFailed) -> bool:
    by_handler = failure.error not in ("States.Timeout",)
    return any(
        name in (failure.error, "States.ALL") or (name == "States.TaskFailed" and by_handler)
        for name in clause["ErrorEquals"]
    )
