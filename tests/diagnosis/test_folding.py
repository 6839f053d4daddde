"""Findings become issues: root causes first, with the symptoms that they explain."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest

from smdebug.diagnosis import CAUSES, Issue, as_text, evidence_of, fold, headline
from smdebug.diagnosis.patterns import PATTERNS
from smdebug.diagnosis.places import layer_of
from smdebug.rules.findings import Finding


def evidence(cause, since, tensor=None, rule=None, message="", **more):
    finding = Finding(tensor, cause=cause, message=message or f"{cause} found", **more).to_dict()
    return evidence_of(
        rule or cause.title().replace(" ", "") or "Old",
        [(since, [finding]), (since + 10, [finding])],
        advice={cause: (f"Repair the {cause}.",), "": ("Look closely.",)},
        docs="rules.md#rule",
    )


def test_a_cause_comes_first_and_its_symptoms_beneath_it():
    issues = fold(
        [
            *evidence("not learning", 730),
            *evidence("spike", 722, "loss"),
            *evidence("learning rate", 720, message="learning rate of group 0 rose from 0.01 to 0.04"),
        ]
    )
    (issue,) = issues
    assert headline(issue) == "The learning rate is wrong, since step 720"
    assert [(symptom.cause, symptom.since) for symptom in issue.symptoms] == [
        ("spike", 722),
        ("not learning", 730),
    ]
    assert issue.advice == ("Repair the learning rate.",)
    assert as_text(issue) == [
        "The learning rate is wrong, since step 720",
        "    Learning rate of group 0 rose from 0.01 to 0.04.",
        "    Why       Found at 2 steps, last at step 730.",
        "    Symptoms  A value spikes, since step 722: spike found (updates that are too large throw the "
        "weights out of their range)",
        "              The model does not learn, since step 730: not learning found (with such steps the "
        "optimizer cannot follow the gradient)",
        "    Try       Repair the learning rate.",
        "    Rule      LearningRate",
        "    More      rules.md#rule",
    ]


def test_what_was_there_before_is_not_explained_by_what_came_later():
    issues = fold([*evidence("learning rate", 720), *evidence("spike", 100)])
    assert [issue.cause for issue in issues] == ["spike", "learning rate"]


@pytest.mark.parametrize(
    ("vanished", "causes"), [(14, ["learning rate"]), (120, ["not learning", "learning rate"])]
)
def test_a_trend_is_explained_by_what_was_there_for_half_of_it(vanished, causes):
    finding = Finding(None, cause="not learning", message="the loss does not fall", since=0)
    stuck = evidence_of("StuckLoss", [(150, [finding.to_dict()])])
    issues = fold([*stuck, *evidence("learning rate", vanished)])
    assert [issue.cause for issue in issues] == causes


def test_a_spike_between_two_saved_steps_is_explained_by_what_the_next_one_shows():
    spike = Finding("loss", cause="spike", message="The loss jumped", since=357).to_dict()
    found = evidence_of("LossSpike", [(360, [spike])])
    (issue,) = fold([*found, *evidence("exploding", 360)])
    assert (issue.cause, [symptom.cause for symptom in issue.symptoms]) == ("exploding", ["spike"])
    assert [each.cause for each in fold([*found, *evidence("exploding", 370)])] == [
        "spike",
        "exploding",
    ]


def test_a_chain_of_explanations_ends_at_its_root():
    order = ("fc1", "fc2", "head")
    (issue,) = fold(
        [
            *evidence("lost update", 30, "fc1.weight"),
            *evidence("vanishing gradient", 20, "gradient/fc1.weight"),
            *evidence("dead activation", 20, "fc2_output_0"),
            *evidence("bad initialisation", 0, "fc2.weight"),
        ],
        order=order,
    )
    assert issue.cause == "bad initialisation"
    assert [symptom.cause for symptom in issue.symptoms] == [
        "dead activation",
        "vanishing gradient",
        "lost update",
    ]


@pytest.mark.parametrize(("layer", "causes"), [("fc1", 1), ("fc2", 1), ("head", 2)])
def test_a_dead_activation_explains_gradients_of_its_own_and_earlier_layers_only(layer, causes):
    found = [
        *evidence("dead activation", 5, "fc2_output_0"),
        *evidence("vanishing gradient", 5, f"gradient/{layer}.weight"),
    ]
    assert len(fold(found, order=("fc1", "fc2", "head"))) == causes
    assert len(fold(found)) == 1  # nothing contradicts it


def test_rules_that_find_the_same_cause_are_one_problem():
    (issue,) = fold(
        [
            *evidence("spike", 12, "fc.weight", rule="UpdateSpike", worker="worker_1"),
            *evidence("spike", 10, "loss", rule="LossSpike", message="loss jumped to 9"),
        ]
    )
    assert issue.rules == ("LossSpike", "UpdateSpike")
    assert (issue.what, issue.since) == ("loss jumped to 9", 10)
    assert (issue.where, issue.workers) == (("loss", "fc.weight"), ("worker_1",))


def test_findings_without_a_cause_are_problems_of_their_rules():
    issues = fold([*evidence("", 3, rule="MyRule"), *evidence("", 3, rule="MyOther")])
    assert [headline(issue) for issue in issues] == [
        "MyRule, since step 3",
        "MyOther, since step 3",
    ]
    assert issues[0].advice == ("Look closely.",)


def test_a_rule_may_find_several_causes_each_with_its_onset_and_advice():
    steps = [
        (40, [{"cause": "imbalance", "message": "class 0 has 99 %", "since": 3}]),
        (50, [{"cause": "padding"}, {"message": "no cause", "details": {"found_since": 45}}]),
    ]
    found = evidence_of("Batches", steps, advice={"padding": ("Sort by length.",)}, cause="spike")
    assert [(item.cause, item.since, item.last, item.advice) for item in found] == [
        ("imbalance", 3, 40, ()),
        ("spike", 45, 50, ()),
        ("padding", 50, 50, ("Sort by length.",)),
    ]


def test_numbers_are_reasons_unless_the_sentence_has_them():
    findings = [
        Finding("a", "mean", 0.5, 0.25, message="a is large").to_dict(),
        Finding("b", "mean", 0.4, 0.25).to_dict(),
    ]
    (found,) = evidence_of("Large", [(1, findings)])
    assert found.reasons == ("a: mean 0.5 (limit 0.25)", "b: mean 0.4 (limit 0.25)")
    (found,) = evidence_of("Large", [(1, [Finding("a", "mean", 0.5, 0.25).to_dict()])])
    assert found.reasons == ()


def test_an_issue_is_the_same_after_json():
    (issue,) = fold([*evidence("spike", 9, "loss"), *evidence("learning rate", 9)])
    assert Issue.from_dict(issue.to_dict()) == issue
    assert Issue.from_dict({"symptoms": [7], "unknown": 1}) == Issue("", "", 0, 0)


@pytest.mark.parametrize(
    ("tensor", "layer"),
    [
        ("gradient/fc1.weight", "fc1"),
        ("encoder.0.attention.bias", "encoder.0.attention"),
        ("fc1_output_0", "fc1"),
        ("conv1.input.0", "conv1"),
        ("dense/kernel:0", "dense"),
        ("loss", "loss"),
        ("gradient/weight", "weight"),
        ("CrossEntropyLoss_output_0", "CrossEntropyLoss"),
    ],
)
def test_the_layer_of_a_tensor(tensor, layer):
    assert layer_of(tensor) == layer


def test_the_patterns_name_known_causes_and_have_no_cycles():
    named = {cause for pattern in PATTERNS for cause in (pattern.cause, pattern.symptom)}
    assert named <= set(CAUSES)
    graph: dict[str, set[str]] = {}
    for pattern in PATTERNS:
        graph.setdefault(pattern.symptom, set()).add(pattern.cause)
    assert list(TopologicalSorter(graph).static_order())
    assert all(pattern.because for pattern in PATTERNS)
