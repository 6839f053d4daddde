"""What a gate decides, and the durations that it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smdebug.diagnosis import Issue
from smdebug.exceptions import SMDebugValueError
from smdebug.runs.evaluation.gating import Age, GatedRun, GateOutcome, decide, in_words, seconds_of

FINE = GatedRun(
    issues=(), passed=("A",), failed=(), left_out=0, last_step=10, has_ended=True, has_found=False
)
ISSUE = Issue("vanishing gradient", "small", since=4, last=8)
YOUNG = Age(5.0, 10.0)


def test_a_run_passes_if_nothing_speaks_against_it():
    assert decide(FINE, YOUNG, must_have_ended=True).outcome is GateOutcome.PASSED


@pytest.mark.parametrize(
    ("changed", "age", "outcome"),
    [
        ({"issues": (ISSUE,), "failed": ("B",)}, Age(99.0, 10.0), GateOutcome.FAILING),
        ({"has_found": True}, YOUNG, GateOutcome.FAILING),
        ({"failed": ("B",)}, YOUNG, GateOutcome.UNREADABLE),
        ({"left_out": 1}, Age(99.0, 10.0), GateOutcome.UNREADABLE),
        ({}, Age(10.5, 10.0), GateOutcome.STALE),
        ({}, Age(None, 10.0), GateOutcome.STALE),
        ({"has_ended": False}, Age(99.0, 10.0), GateOutcome.STALE),
        ({"has_ended": False}, YOUNG, GateOutcome.NOT_ENDED),
        ({"passed": ()}, YOUNG, GateOutcome.NOT_CHECKED),
        ({}, Age(10.0, 10.0), GateOutcome.PASSED),
        ({}, Age(None), GateOutcome.PASSED),
    ],
)
def test_findings_count_first_then_gaps_then_age(changed, age, outcome):
    assert decide(replace(FINE, **changed), age, must_have_ended=True).outcome is outcome


def test_the_reason_counts_the_other_problems():
    run = replace(FINE, issues=(ISSUE, ISSUE, ISSUE))
    assert decide(run, YOUNG).reason == "Gradients vanish, since step 4, and 2 other problems."


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), (" 2H ", 7200), ("1.5 d", 129600), ("90", 90)]
)
def test_a_duration_has_a_unit_or_is_in_seconds(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1m", "10 minutes", "1e3", "٣m", "1h30m"])
def test_anything_else_is_refused(text):
    with pytest.raises(SMDebugValueError, match="such as 10m"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("seconds", "words"), [(90, "90 s"), (600, "10 min"), (12600, "3.5 h"), (259200, "3 days")]
)
def test_a_duration_is_said_in_one_unit(seconds, words):
    assert in_words(seconds) == words
