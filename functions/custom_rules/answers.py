"""Reading a custom rule's answer, as data that is checked field by field.

The answer comes from a process that ran untrusted code. It is accepted whole or refused whole.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.files.names import LAST_STEP
from smdebug.rules.outcomes import Behind, Failed, Found, NothingToCheck, NotSaved, Outcome, Passed
from smdebug.service.step_index.items import LARGEST_INLINE_STATE

MOST_FINDINGS = 100
LONGEST_TEXT = 2_000
MOST_VALUES = 2_000  # in all findings of a step
_DEEPEST = 6
_TEXTS = ("tensor", "statistic", "worker", "message", "cause", "title")
_LISTS = ("why", "advice")
_MOST_SENTENCES = 10
_EXTRA: Mapping[str, tuple[str, ...]] = {
    "found": ("findings",),
    "passed": (),
    "nothing to check": ("text",),
    "not saved": ("text",),
    "failed": ("text",),
    "behind": ("text",),
}
_FIELDS = frozenset((*_TEXTS, *_LISTS, "value", "threshold", "step", "since", "details"))


class AnswerRefused(SMDebugValueError):
    """The answer is invalid or does not fit the claim; the message gives the reason."""


@dataclass(frozen=True)
class Answer:
    """The rule's outcomes at the first steps of the claim, and its state."""

    outcomes: Sequence[Outcome | Behind]
    state: bytes | None = None
    state_key: str = ""
    problem: str = ""  # why there is no state
    left_out: tuple[str, ...] = ()
    asks_at_end: bool = False


@dataclass(frozen=True)
class Died:
    """The process died, at `step` if that is known."""

    message: str
    step: int | None = None
    later: bool = False  # it may succeed later


def read_answer(ran: Any, *, asked: Sequence[int], state_key: str) -> Answer | Died:
    """Return the answer in the result of the rule's function; `AnswerRefused` if it is invalid."""
    result = _mapping(ran, "The outcome of the run")
    if "answer" not in result:
        error = result.get("Error")
        if not isinstance(error, str):
            raise AnswerRefused("The rule's function returned no answer")
        cause = result.get("Cause")
        return Died(_text(f"its function failed ({error}: {_short(cause)})", "it", LONGEST_TEXT))
    answer = _mapping(result["answer"], "The answer")
    if "died" in answer:
        return _death(_mapping(answer["died"], "The report of its death"), asked)
    _only(answer, ("steps", "state", "left_out", "asks_at_end"), "the answer")
    outcomes = _outcomes(answer.get("steps"), asked)
    saved = _mapping(answer.get("state") or {}, "The state")
    _only(saved, ("inline", "key", "problem"), "the state")
    if len(saved) > 1:
        raise AnswerRefused("The state is given in more than one form")
    left_out = answer.get("left_out", [])
    if not isinstance(left_out, list) or len(left_out) > 20:
        raise AnswerRefused("The names left out of the state are not a list of at most 20")
    names = tuple(_text(name, "A name", 200) for name in left_out)
    asks_at_end = answer.get("asks_at_end", False)
    if not isinstance(asks_at_end, bool):
        raise AnswerRefused("`asks_at_end` is not a boolean")
    if "key" in saved and saved["key"] != state_key:
        raise AnswerRefused("The key of the state is not the one of this claim")
    return Answer(
        outcomes,
        state=_bytes(saved["inline"]) if "inline" in saved else None,
        state_key=state_key if "key" in saved else "",
        problem=_text(saved["problem"], "The problem", LONGEST_TEXT) if "problem" in saved else "",
        left_out=names,
        asks_at_end=asks_at_end,
    )


def _death(death: Mapping[str, Any], asked: Sequence[int]) -> Died:
    _only(death, ("step", "message", "later"), "the report of its death")
    step = death.get("step")
    if step is not None and not (type(step) is int and step in asked):
        raise AnswerRefused("It died at a step that is not in its job")
    later = death.get("later", False)
    if not isinstance(later, bool):
        raise AnswerRefused("`later` in the report of its death is not a boolean")
    return Died(_text(death.get("message"), "The message of its death", LONGEST_TEXT), step, later)


def _outcomes(steps: Any, asked: Sequence[int]) -> list[Outcome | Behind]:
    if not isinstance(steps, list) or not 0 < len(steps) <= len(asked):
        raise AnswerRefused(f"Its outcomes are not a list of 1 to {len(asked)} steps")
    outcomes: list[Outcome | Behind] = []
    for step_answer, step in zip(steps, asked, strict=False):
        entry = _mapping(step_answer, "An outcome")
        if type(entry.get("step")) is not int or entry["step"] != step:
            raise AnswerRefused(f"An outcome is not of step {step}, which was next")
        if outcomes and isinstance(outcomes[-1], Failed | Behind):
            raise AnswerRefused(f"It evaluated step {step} after it had stopped")
        outcomes.append(_outcome(entry))
    return outcomes


def _outcome(payload: Mapping[str, Any]) -> Outcome | Behind:
    kind = payload.get("outcome")
    extra = _EXTRA.get(kind) if isinstance(kind, str) else None
    if extra is None:
        raise AnswerRefused(f"An outcome is none of {', '.join(_EXTRA)}")
    _only(payload, ("step", "outcome", *extra), "it")
    if kind == "found":
        return Found(_findings(payload.get("findings")))
    text = _text(payload.get("text", ""), "The text of an outcome", LONGEST_TEXT)
    match kind:
        case "nothing to check":
            return NothingToCheck(text)
        case "not saved":
            return NotSaved(text)
        case "failed":
            return Failed(text)
        case "behind":
            return Behind(text)
    return Passed()


def _findings(payload: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(payload, list) or len(payload) > MOST_FINDINGS:
        raise AnswerRefused(f"The findings are not a list of at most {MOST_FINDINGS}")
    room = [MOST_VALUES]
    return tuple(_finding(_mapping(finding, "A finding"), room) for finding in payload)


def _finding(finding: Mapping[str, Any], room: list[int]) -> dict[str, Any]:
    _only(finding, _FIELDS, "a finding")
    for name in _TEXTS:
        if finding.get(name) is not None:
            _text(finding[name], f"The {name} of a finding", LONGEST_TEXT)
    for name in _LISTS:
        texts = finding.get(name, [])
        if not isinstance(texts, list) or len(texts) > _MOST_SENTENCES:
            raise AnswerRefused(
                f"The {name} of a finding is not a list of at most {_MOST_SENTENCES} sentences"
            )
        for text in texts:
            _text(text, f"A sentence in {name} of a finding", LONGEST_TEXT)
    for name in ("step", "since"):
        step = finding.get(name)
        if step is not None and not (type(step) is int and 0 <= step <= LAST_STEP):
            raise AnswerRefused(f"The {name} of a finding is not a valid step")
    if not isinstance(finding.get("details", {}), dict):
        raise AnswerRefused("The details of a finding are not a mapping")
    for name in ("value", "threshold", "details"):
        _plain(finding.get(name), room, 0)
    return dict(finding)


def _plain(value: Any, room: list[int], depth: int) -> None:
    room[0] -= 1
    if room[0] < 0 or depth > _DEEPEST:
        raise AnswerRefused("The findings hold too many values, or too deeply nested ones")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _text(value, "A text in a finding", LONGEST_TEXT)
    elif isinstance(value, int):
        if abs(value) >= 2**64:
            raise AnswerRefused("A number in a finding is too large")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise AnswerRefused("A number in a finding is NaN or infinite")
    elif isinstance(value, list):
        for element in value:
            _plain(element, room, depth + 1)
    elif isinstance(value, dict):
        for name, element in value.items():
            _text(name, "A name in a finding", 200)
            _plain(element, room, depth + 1)
    else:
        raise AnswerRefused("A value in a finding is not plain data")


def _bytes(text: Any) -> bytes:
    try:
        data = b64decode(_text(text, "The state", 2 * LARGEST_INLINE_STATE), validate=True)
    except ValueError as error:
        raise AnswerRefused(f"The state cannot be read: {error}") from None
    if len(data) > LARGEST_INLINE_STATE:
        raise AnswerRefused(f"The state in the answer has more than {LARGEST_INLINE_STATE} bytes")
    return data


def _mapping(payload: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(payload, dict):
        raise AnswerRefused(f"{what} is not a mapping")
    return payload


def _only(payload: Mapping[str, Any], names: Sequence[str] | frozenset[str], what: str) -> None:
    for name in payload:
        if name not in names:
            raise AnswerRefused(f"There is an unknown field {_short(name)!r} in {what}")


def _text(text: Any, what: str, longest: int) -> str:
    if not isinstance(text, str) or len(text) > longest:
        raise AnswerRefused(f"{what} is not text of at most {longest} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise AnswerRefused(f"{what} is not valid Unicode") from None
    return text


def _short(value: Any) -> str:
    """Return the first characters of a text, or the name of another value's type."""
    text = value if isinstance(value, str) else type(value).__name__
    return text[:200].encode("utf-8", "replace").decode()
