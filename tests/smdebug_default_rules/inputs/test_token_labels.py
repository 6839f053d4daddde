"""Labels of tokens: shifted twice, with padding, without the end of text, and all ignored."""

from __future__ import annotations

import pytest

from tests.smdebug_default_rules.made_runs import TERM
from tests.smdebug_default_rules.made_steps import Steps

RIGHT = {"equal": [0.1, 1.0, 0.1], "counted": 200, "padding": 0.0, "ends": 8, "ends_learned": 8}


def written(*facts, ignored=0.2, **term):
    """Steps of which the loss has these facts of tokens."""
    steps = Steps()
    for tokens in facts:
        loss = {"factor": 1.0, "terms": [{**TERM, "ignored": ignored, **term}]}
        steps.facts["loss"] = loss if tokens is None else {**loss, "tokens": tokens}
        steps.write()
    return steps


def found(*facts, ignored=0.2):
    return [
        (step, finding.since, finding.message.partition(":")[0])
        for step, finding in written(*facts, ignored=ignored).evaluate("TokenLabels")
    ]


def test_right_labels_are_not_reported():
    assert found(*[RIGHT] * 5) == []


def test_labels_that_are_two_tokens_ahead_are_reported_at_the_third_step():
    twice = {"equal": [0.1, 0.2, 1.0], "counted": 200}
    assert found(*[twice] * 4) == [
        (step, 0, "Each label is the token two places after its input") for step in (2, 3)
    ]


@pytest.mark.parametrize("equal", [[0.1, 0.2, 0.99], [1.0, 1.0, 1.0], [0.1, 0.95, 1.0], [1.0, 0.2, 0.2]])
def test_labels_that_may_be_wanted_are_not_reported(equal):
    assert found(*[{"equal": equal, "counted": 200}] * 5) == []


@pytest.mark.parametrize(("padding", "is_found"), [(0.04, False), (0.06, True)])
def test_padding_that_counts_is_reported_above_a_share(padding, is_found):
    assert bool(found(*[{**RIGHT, "padding": padding}] * 3)) == is_found


TAGS = {"equal": [0.1, 0.1, 0.1], "counted": 200, "padding": 0.6, "padding_class": 0}


@pytest.mark.parametrize(
    ("changes", "term", "is_found"),
    [
        ({}, {}, True),
        ({"padding": 0.21}, {}, True),
        ({"padding": 0.19}, {}, False),
        ({}, {"weights": [0.0, 1.0, 1.0]}, False),
        ({}, {"weights": [0.5, 1.0, 1.0]}, True),
        ({}, {"reduction": "none"}, False),
        ({"padding_class": None, "padding": 0.0}, {}, False),
    ],
)
def test_a_class_of_padding_that_counts_is_reported(changes, term, is_found):
    findings = written(*[{**TAGS, **changes}] * 3, **term).evaluate("TokenLabels")
    assert [(at.title, at.value) for _, at in findings] == (
        [("Padding is learned", changes.get("padding", 0.6))] if is_found else []
    )
    assert all("ignore_index=0" in at.advice[0] for _, at in findings)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_loss_that_is_masked_afterwards_says_itself_what_counts(reduction):
    steps = written(*[{**RIGHT, "padding": 0.5, "ends_learned": 0}] * 4, reduction=reduction)
    assert bool(steps.evaluate("TokenLabels")) == (reduction == "mean")


@pytest.mark.parametrize(
    ("known", "advice"),
    [({}, "Ignore padding by the mask"), ({"padding_id": 3}, "Give the loss ignore_index=3")],
)
def test_what_to_try_depends_on_what_padding_is_known_by(known, advice):
    (_, finding), *_ = written(*[{**RIGHT, "padding": 0.5, **known}] * 3).evaluate("TokenLabels")
    assert finding.advice[0].startswith(advice)


def test_ends_of_text_that_never_count_are_reported_once_there_are_enough():
    without = {**RIGHT, "ends": 2, "ends_learned": 0}
    assert found(*[without] * 4) == [
        (3, 0, "None of 8 ends of texts is among the labels that count, although the token before is")
    ]
    assert found(without, without, {**RIGHT, "ends_learned": 1}, without, without) == []


def test_a_problem_has_to_last():
    twice = {"equal": [0.1, 0.2, 1.0], "counted": 200}
    assert found(twice, twice, RIGHT, twice, twice) == []


def test_labels_that_are_all_ignored_are_reported_at_the_third_step():
    assert found(None, None, None, ignored=1.0) == [
        (2, 0, "All labels are ignored at 3 saved steps in a row")
    ]
    assert found(None, None, None, ignored=0.99) == []
