"""The answer of a custom rule is untrusted data: all of it is valid, or none of it counts."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.custom_rules.answers import (
    MOST_FINDINGS,
    Answer,
    AnswerRefused,
    Died,
    read_answer,
)
from smdebug.rules.outcomes import Behind, Failed, Found, NothingToCheck, NotSaved, Passed
from smdebug.service.step_index.items import LARGEST_INLINE_STATE

KEY = "state/custom-mine/mine/00000001.state"
FINDING = {"tensor": "fc", "statistic": "max", "value": 7.5, "threshold": 1, "worker": "worker_0"}


def read(answer: Any, asked: tuple[int, ...] = (3, 5)) -> Answer | Died:
    return read_answer({"answer": answer}, asked=asked, state_key=KEY)


def at(step: int, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    return {"step": step, "outcome": outcome, **more}


def found(**finding: Any) -> dict[str, Any]:
    return {"steps": [at(3, "found", findings=[finding])]}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (at(3), Passed()),
        (at(3, "nothing to check"), NothingToCheck()),
        (at(3, "nothing to check", text="no labels"), NothingToCheck("no labels")),
        (at(3, "not saved", text="w"), NotSaved("w")),
        (at(3, "failed", text="m"), Failed("m")),
        (at(3, "behind", text="m"), Behind("m")),
        (at(3, "found", findings=[FINDING]), Found((FINDING,))),
    ],
)
def test_each_outcome_equals_that_of_a_built_in_rule(answer, outcome):
    assert read({"steps": [answer]}).outcomes == [outcome]


def test_it_may_stop_early_and_the_rest_is_claimed_again():
    assert len(read({"steps": [at(3)]}).outcomes) == 1
    assert len(read({"steps": [at(3), at(5)]}).outcomes) == 2


def test_its_state_is_in_the_answer_or_under_its_own_key():
    inline = b64encode(b"remembered").decode()
    assert read({"steps": [at(3)], "state": {"inline": inline}}).state == b"remembered"
    assert read({"steps": [at(3)], "state": {"key": KEY}}).state_key == KEY
    answered = read({"steps": [at(3)], "state": {"problem": "too much"}, "left_out": ["lock"]})
    assert (answered.problem, answered.left_out) == ("too much", ("lock",))


def test_a_death_is_an_answer_and_so_is_that_of_its_function():
    answer = {"died": {"step": 5, "message": "memory"}, "steps": []}
    assert read(answer) == Died("memory", 5)
    failed = read_answer({"Error": "Sandbox.Timedout", "Cause": "after 120 s"}, asked=(3,), state_key=KEY)
    assert failed == Died("its function failed (Sandbox.Timedout: after 120 s)")


DEEP: Any = 1
for _ in range(50):
    DEEP = [DEEP]

REFUSED = {
    "nothing": None,
    "a text": "passed",
    "a list": [at(3)],
    "no steps": {"steps": []},
    "steps that are none": {"steps": {"3": "passed"}},
    "a step it was not asked about": {"steps": [at(4)]},
    "the steps in another order": {"steps": [at(5), at(3)]},
    "a step twice": {"steps": [at(3), at(3)]},
    "more steps than asked": {"steps": [at(3), at(5), at(7)]},
    "a step that is a number of another kind": {"steps": [at(3.0)]},
    "a step that is a truth": {"steps": [at(True)]},
    "a step after it had failed": {"steps": [at(3, "failed", text="m"), at(5)]},
    "an outcome that there is not": {"steps": [at(3, "stopped")]},
    "an outcome that is a list": {"steps": [at(3, ["passed"])]},
    "a run of others": {"steps": [at(3)], "run": "bucket/of-somebody-else"},
    "a run in an outcome": {"steps": [at(3, run="bucket/of-somebody-else")]},
    "a finding of another run": found(**FINDING, run="bucket/of-somebody-else"),
    "an action in a finding": found(**FINDING, actions=[{"name": "stoptraining"}]),
    "actions in the answer": {"steps": [at(3)], "actions": [{"name": "stoptraining"}]},
    "a status": {"steps": [at(3)], "status": "NoIssuesFound"},
    "an outbox": {"steps": [at(3)], "outbox": {"id": {}}},
    "findings that are none": {"steps": [at(3, "found", findings="many")]},
    "too many findings": {"steps": [at(3, "found", findings=[FINDING] * (MOST_FINDINGS + 1))]},
    "a name that is none": found(tensor=7),
    "a text that is too long": found(message="x" * 2001),
    "a text that is not text": found(message="\ud800"),
    "a number that JSON has not": found(value=float("nan")),
    "a number without end": found(value=float("inf")),
    "a number that is too large": found(value=2**64),
    "a number of the step below zero": found(step=-1),
    "a beginning before the first step": found(since=-1),
    "a cause that is not text": found(cause=1),
    "a title that is not text": found(title=["a"]),
    "numbers that are no list": found(why="loss 9"),
    "advice that is not text": found(advice=["Lower it.", 3]),
    "more advice than anybody reads": found(advice=["Lower it."] * 11),
    "details that are none": found(details=[1]),
    "details that go too deep": found(details={"a": DEEP}),
    "details that are too many": found(details={"a": [0] * 3000}),
    "a name in the details that is not text": found(details={1: 2}),
    "the state of another rule": {"steps": [at(3)], "state": {"key": "state/builtin/x/1.state"}},
    "memory above its folder": {"steps": [at(3)], "state": {"key": f"{KEY}/../other"}},
    "memory in two places": {"steps": [at(3)], "state": {"key": KEY, "inline": ""}},
    "memory that is too large": {
        "steps": [at(3)],
        "state": {"inline": b64encode(bytes(LARGEST_INLINE_STATE + 1)).decode()},
    },
    "memory that cannot be read": {"steps": [at(3)], "state": {"inline": "?"}},
    "names left out that are none": {"steps": [at(3)], "left_out": "lock"},
    "many names left out": {"steps": [at(3)], "left_out": ["x"] * 21},
    "a death at another step": {"died": {"step": 4, "message": "m"}},
    "a death without a word": {"died": {"step": 3}},
    "a death that is a truth": {"died": {"step": 3, "message": "m", "later": 1}},
    "a death with more to it": {"died": {"step": 3, "message": "m", "actions": []}},
}


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth % 2 else [nested(depth - 1)] if depth else 1


def test_details_may_be_nested_six_times():
    assert read(found(details={"a": nested(5)})).outcomes
    with pytest.raises(AnswerRefused, match="too deeply nested"):
        read(found(details={"a": nested(6)}))


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_in_a_short_sentence(answer):
    with pytest.raises(AnswerRefused) as refused:
        read(answer)
    assert 10 < len(str(refused.value)) < 400
    str(refused.value).encode()


@pytest.mark.parametrize("ran", [None, [], {}, {"Error": 7}, {"Error": None, "Cause": "x"}])
def test_a_function_that_gave_no_answer_is_refused_too(ran):
    with pytest.raises(AnswerRefused):
        read_answer(ran, asked=(3,), state_key=KEY)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["steps", "step", "outcome", "findings", "state", "key", "died", "message", "value"]
            )
            | st.text(max_size=8),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_whatever_is_answered_it_is_read_or_refused_and_what_is_read_is_json(answer):
    try:
        answered = read(answer, asked=(0, 1))
    except AnswerRefused:
        return
    if isinstance(answered, Answer):
        findings = [outcome.findings for outcome in answered.outcomes if isinstance(outcome, Found)]
        json.dumps(findings, allow_nan=False)
