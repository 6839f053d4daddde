"""Findings of one rule become evidence: grouped by cause, with numbers that the sentence lacks."""

from __future__ import annotations

import pytest

from smdebug.diagnosis.evidence import Evidence, evidence_of, measured, message_of, onset_of


def finding(message="m", **more):
    return {"message": message, **more}


def test_evidence_has_all_that_its_findings_say():
    first = [
        finding("a is large", tensor="a", worker="worker_1", statistic="mean", value=0.5, threshold=0.25),
        finding("b is large", tensor="b", worker="worker_0"),
    ]
    steps = [
        (4, first),
        (6, [finding("again", tensor="c", statistic="rms", value=9)]),
        (2, [finding("late")]),
    ]
    assert evidence_of("Large", steps, advice={"": ("Scale it.",)}, docs="page#large", cause="exploding") == [
        Evidence(
            cause="exploding",
            rule="Large",
            what="a is large",
            since=2,
            last=6,
            steps=3,
            found=2,
            reasons=("a: mean 0.5 (limit 0.25)", "b is large"),
            places=("a", "b", "c"),
            workers=("worker_0", "worker_1"),
            advice=("Scale it.",),
            docs="page#large",
        )
    ]


def test_a_step_without_findings_is_a_finding_without_facts():
    (found,) = evidence_of("Old", [(0, []), (5, [])])
    assert found == Evidence("", "Old", "the condition is met", since=0, last=5, steps=2, found=0)


def test_a_single_finding_is_evidence_of_one_step():
    assert evidence_of("Rule", [(3, [finding("x")])]) == [Evidence("", "Rule", "x", 3, 3, found=3)]


def test_several_findings_of_one_step_are_one_step():
    (found,) = evidence_of("Many", [(3, [finding("x"), finding("y")])])
    assert (found.steps, found.reasons) == (1, ("y",))


def test_the_advice_of_a_cause_comes_before_the_advice_of_the_rule():
    steps = [(1, [finding(cause="spike"), finding(cause="exploding"), finding()])]
    advice = {"spike": ("For spikes.",), "": ("For all.",)}
    assert [(each.cause, each.advice) for each in evidence_of("Rule", steps, advice=advice)] == [
        ("spike", ("For spikes.",)),
        ("exploding", ("For all.",)),
        ("", ("For all.",)),
    ]
    assert evidence_of("Rule", [(1, [finding()])])[0].advice == ()


def test_three_reasons_and_three_pieces_of_advice_are_kept():
    (found,) = evidence_of("Rule", [(1, [finding(text) for text in "abcdef"])], advice={"": tuple("uvwxyz")})
    assert (found.what, found.reasons, found.advice) == ("a", ("b", "c", "d"), ("u", "v", "w"))


def test_a_finding_has_its_own_title_and_advice():
    first = finding("a", title="All is zero", advice=["First this.", "Then that."], tensor="x")
    steps = [(1, [first]), (2, [finding("b", title="Another", advice=["Later."])])]
    (found,) = evidence_of("Rule", steps, advice={"": ("In general.",)})
    assert (found.title, found.advice) == ("All is zero", ("First this.", "Then that."))
    (plain,) = evidence_of("Rule", [(1, [finding("a", advice=[])])], advice={"": ("In general.",)})
    assert (plain.title, plain.advice) == ("", ("In general.",))


def test_findings_of_a_step_share_their_advice_and_each_has_its_numbers():
    steps = [(1, [finding(text, why=[f"{text} 1"], advice=["Do it.", f"Or {text}."]) for text in "ab"])]
    (found,) = evidence_of("Rule", steps)
    assert found.reasons == ("a 1", "b 1")
    assert found.advice == ("Do it.", "Or a.", "Or b.")


def test_a_finding_of_another_title_says_its_sentence_too():
    steps = [(1, [finding("a", title="A", why=["a 1"]), finding("b is so", title="B", why=["b 1"])])]
    assert evidence_of("Rule", steps)[0].reasons == ("a 1", "b 1", "b is so")


def test_a_thousand_places_are_kept():
    steps = [(1, [finding(tensor=f"layer_{number}") for number in range(1002)])]
    (found,) = evidence_of("Rule", steps)
    assert found.places == tuple(f"layer_{number}" for number in range(1000))


def test_what_differs_in_numbers_alone_is_said_of_the_first_finding_and_once():
    findings = [
        {"message": "gradients vanish", "why": ["1e-9 at fc1, and 1e-3 at fc3.", "It fell since step 4."]},
        {"message": "gradients vanish", "why": ["2e-9 at fc2, and 1e-3 at fc3.", "It is new."]},
    ]
    (found,) = evidence_of("GradientFlow", [(9, findings)])
    assert found.reasons == ("1e-9 at fc1, and 1e-3 at fc3.", "It fell since step 4.", "It is new.")


def test_a_finding_may_say_the_same_of_two_numbers():
    why = ["The mean of w1 is 3.", "The mean of w2 is 4."]
    (found,) = evidence_of("R", [(9, [{"message": "m", "why": why}])])
    assert found.reasons == tuple(why)


def test_a_reason_is_not_said_twice():
    texts = ("x is 7 of 9", "7 of 9", "other", "other")
    (found,) = evidence_of("Rule", [(1, [finding(text) for text in texts])])
    assert found.reasons == ("other",)


@pytest.mark.parametrize(
    ("known", "onset"),
    [
        ({}, 40),
        ({"since": 30}, 30),
        ({"since": 50}, 40),  # no finding is older than its step
        ({"since": "30"}, 40),
        ({"since": True}, 40),
        ({"since": None, "details": {"found_since": 20}}, 20),
        ({"since": 30, "details": {"found_since": 20}}, 30),
        ({"details": {"found_since": 60}}, 40),
        ({"details": "text"}, 40),
    ],
)
def test_a_finding_was_visible_since(known, onset):
    assert onset_of(finding(**known), 40) == onset


def test_the_evidence_of_a_rule_is_in_the_order_of_onset():
    steps = [
        (9, [finding(cause="spike"), finding(cause="scaler", since=0), finding(cause="padding", since=4)])
    ]
    assert [(each.cause, each.since, each.found) for each in evidence_of("Rule", steps)] == [
        ("scaler", 0, 9),
        ("padding", 4, 9),
        ("spike", 9, 9),
    ]


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"message": "said", "tensor": "x"}, "said"),
        ({"message": "", "tensor": "x"}, "x"),
        ({"tensor": ""}, "the condition is met"),
    ],
)
def test_a_finding_says_its_message_or_names_its_tensor(known, message):
    assert message_of(known) == message


@pytest.mark.parametrize(
    ("known", "reasons"),
    [
        ({"value": 0.123456}, ("value 0.1235",)),
        ({"value": 0.123456, "threshold": 0.5}, ("value 0.1235 (limit 0.5)",)),
        ({"value": 0, "threshold": 0}, ("value 0 (limit 0)",)),
        ({"value": 3, "statistic": "times the first loss"}, ("3 times the first loss",)),
        ({"value": 3, "tensor": "w", "statistic": "rms"}, ("w: rms 3",)),
        ({"value": "softmax"}, ()),  # which is no number
        ({"value": True, "threshold": False}, ()),
        ({"value": "NaN", "threshold": 2}, ("value NaN (limit 2)",)),
        ({"value": 7, "why": ["3 of 4 are 0"]}, ("3 of 4 are 0",)),
        ({"why": ["a 1", "b 2"], "message": "it has a 1 in it"}, ("b 2",)),
        ({"value": 7, "why": "no list"}, ("value 7",)),
        ({"value": None, "threshold": 2}, ()),
        ({"message": "it is 0.1235 now", "value": 0.123456}, ()),
    ],
)
def test_the_numbers_of_the_first_finding_are_reasons(known, reasons):
    (found,) = evidence_of("Rule", [(1, [finding(**known)])])
    assert found.reasons == reasons


@pytest.mark.parametrize(
    ("statistic", "said"),
    [
        ("times the first loss", "3 times the first loss"),
        ("gradient, as a share of the weights", "gradient is 3 of the weights"),
        ("zeros in percent", "zeros 3 %"),
        ("rms", "rms 3"),
    ],
)
def test_a_statistic_is_measured_in_words(statistic, said):
    assert measured(statistic, "3") == said
