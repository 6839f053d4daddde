"""Findings become issues: root causes first, with the symptoms that they explain."""

from __future__ import annotations

import json
from graphlib import TopologicalSorter

import pytest

from smdebug.diagnosis import CAUSES, Evidence, Issue, Symptom, as_text, evidence_of, fold, headline
from smdebug.diagnosis.causes import TITLES
from smdebug.diagnosis.issues import with_checkpoints
from smdebug.diagnosis.patterns import PATTERNS
from smdebug.files.notes.checkpoints import Checkpoint
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
        "    Where     steps 720 to 730",
        "    Symptoms  The loss or an input jumps, since step 722: spike found (updates that are too large "
        "throw the weights out of their range)",
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
    ("vanished", "causes"),
    [
        (14, ["learning rate"]),
        (75, ["learning rate"]),
        (76, ["not learning", "learning rate"]),
        (120, ["not learning", "learning rate"]),
    ],
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


def test_a_symptom_of_a_symptom_stands_under_the_root_that_does_not_explain_it_itself():
    pairs = {(pattern.cause, pattern.symptom) for pattern in PATTERNS}
    assert ("ranks alike", "imbalance") not in pairs
    assert ("ranks alike", "constant output") not in pairs
    (issue,) = fold(
        [
            *evidence("constant output", 40),
            *evidence("imbalance", 30),
            *evidence("repeated input", 20),
            *evidence("ranks alike", 10),
        ]
    )
    assert issue.cause == "ranks alike"
    assert [(symptom.cause, symptom.because) for symptom in issue.symptoms] == [
        ("repeated input", "all ranks train on the same rows"),
        ("imbalance", "the training sees few different rows"),
        ("constant output", "equal rows give equal outputs, and zeros give no gradient"),
    ]


def test_of_two_causes_that_explain_a_symptom_the_earlier_one_does():
    issues = fold(
        [
            *evidence("not learning", 9),
            *evidence("padding", 8),
            *evidence("leaked label", 2),
            *evidence("batch shape", 3),
        ]
    )
    assert {issue.cause: [symptom.cause for symptom in issue.symptoms] for issue in issues} == {
        "leaked label": [],
        "batch shape": ["not learning"],
        "padding": [],
    }


def test_problems_of_the_same_onset_are_in_the_order_of_the_table_and_others_come_last():
    found = [*evidence("my own", 5), *evidence("spike", 5), *evidence("scaler", 5), *evidence("padding", 5)]
    assert [issue.cause for issue in fold(found)] == ["padding", "scaler", "spike", "my own"]


def places(*tensors, cause, since=5):
    return Evidence(cause, "Rule", cause, since, since, places=tensors)


def test_a_cause_explains_a_symptom_only_if_it_can_lead_to_all_of_its_places():
    order = ("fc1", "fc2", "head")
    dead = places("fc2_output_0", cause="dead activation")
    everywhere = places("gradient/fc1.weight", "gradient/head.weight", cause="vanishing gradient")
    assert [issue.cause for issue in fold([dead, everywhere], order=order)] == [
        "dead activation",
        "vanishing gradient",
    ]
    last = places("fc2_output_0", "head_output_0", cause="dead activation")
    assert [issue.cause for issue in fold([last, everywhere], order=order)] == ["dead activation"]


@pytest.mark.parametrize(
    ("cause", "at", "symptom", "seen_at", "issues"),
    [
        ("vanishing gradient", "fc2", "lost update", "fc2", 1),  # in the same layer
        ("vanishing gradient", "fc2", "lost update", "fc2.inner", 1),
        ("vanishing gradient", "fc2", "lost update", "fc1", 2),
        ("vanishing gradient", "fc2", "lost update", "head", 2),
        ("vanishing gradient", "fc2", "no gradient", "fc1", 1),  # in an earlier layer
        ("vanishing gradient", "fc2", "no gradient", "head", 2),
        ("bad initialisation", "fc2", "dead activation", "fc1", 2),  # in a later layer
        ("bad initialisation", "fc2", "dead activation", "fc2", 1),
        ("bad initialisation", "fc2", "dead activation", "head", 1),
        ("bad initialisation", "fc2", "dead activation", "elsewhere", 1),  # of unknown order
        ("bad initialisation", "fc2.a", "dead activation", "fc2.b", 1),  # of one known layer
        ("bad initialisation", "head", "vanishing gradient", "fc1", 1),  # anywhere
    ],
)
def test_a_cause_reaches_the_layers_that_its_pattern_names(cause, at, symptom, seen_at, issues):
    found = [places(at, cause=cause), places(seen_at, cause=symptom)]
    assert len(fold(found, order=("fc1", "fc2", "head"))) == issues


@pytest.mark.parametrize(("cause", "symptom"), [((), ("fc1",)), (("fc2",), ()), ((), ())])
def test_a_problem_without_a_place_can_be_anywhere(cause, symptom):
    found = [places(*cause, cause="vanishing gradient"), places(*symptom, cause="lost update")]
    assert len(fold(found)) == 1


@pytest.mark.parametrize(
    ("cause", "since", "found", "explained_from"),
    [
        ("not learning", 10, None, 10),
        ("not learning", 10, 21, 15),
        ("spike", 10, None, 10),
        ("spike", 10, 20, 20),
        ("spike", 10, 5, 10),
        ("scaler", 10, 30, 10),
    ],
)
def test_the_latest_onset_of_a_cause(cause, since, found, explained_from):
    symptom = Evidence(cause, "Rule", "seen", since, 90, found=found)
    assert len(fold([symptom, *evidence("exploding", explained_from)])) == 1
    assert len(fold([symptom, *evidence("exploding", explained_from + 1)])) == 2


def test_a_problem_of_several_rules_lasts_as_long_as_any_finds_it_and_later_ones_are_reasons():
    found = [Evidence("spike", f"Rule{at}", f"said {at}", 1, last) for at, last in enumerate((7, 9, 8))]
    (issue,) = fold(found)
    assert (issue.why, issue.last) == (("said 1", "said 2"), 9)


def test_a_problem_has_the_title_of_its_first_finding():
    found = [
        Evidence("spike", "B", "b", 2, 2, title="An input jumps"),
        Evidence("spike", "A", "a", 1, 1, title="The loss jumps"),
        Evidence("not learning", "C", "c", 1, 1, title="Nothing moves"),
    ]
    (issue,) = fold([*found, *evidence("exploding", 0)])
    assert [symptom.title for symptom in issue.symptoms] == ["The loss jumps", "Nothing moves"]
    assert fold(found[:2])[0].title == "The loss jumps"
    assert headline(fold(found[:2])[0]) == "The loss jumps, since step 1"


def test_an_issue_has_three_reasons_and_three_pieces_of_advice_of_all_its_rules():
    (issue,) = fold(
        [
            Evidence(
                "spike", "A", "a", 1, 1, reasons=("b", "c"), advice=("x", "y"), docs="page#a", workers=("w1",)
            ),
            Evidence("spike", "B", "b", 2, 2, advice=("y", "z"), docs="page#b", workers=("w0", "w1")),
            Evidence("spike", "C", "d", 3, 3, reasons=("unseen",), advice=("last",)),
            Evidence("spike", "D", "e", 4, 4),
        ]
    )
    assert issue.why == ("b", "c", "d")
    assert issue.advice == ("x", "y", "z")
    assert (issue.docs, issue.workers, issue.rules) == ("page#a", ("w1", "w0"), ("A", "B", "C", "D"))


def test_a_symptom_has_the_facts_of_all_its_rules():
    found = [
        Evidence("spike", "B", "later", 6, 9, places=("b", "a")),
        Evidence("spike", "A", "first", 5, 8, places=("a",)),
        *evidence("exploding", 5),
    ]
    (issue,) = fold(found)
    because = "values that are not finite, or far too large, enter the loss"
    assert issue.symptoms == (Symptom("spike", "first", 5, 9, ("a", "b"), ("A", "B"), because),)
    assert issue.all_rules == ("Exploding", "A", "B")


def test_no_evidence_is_no_issue():
    assert fold([]) == []


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
    first, second = (
        *evidence("spike", 9, "loss", worker="w0", title="The loss jumps"),
        *evidence("learning rate", 8, "lr", worker="w1", title="The rate jumps", why=("0.1, then 6",)),
    )
    (issue,) = with_checkpoints(fold([first, second]), [Checkpoint(3, "a.pt", 1.5), Checkpoint(8, "b.pt")])
    assert issue.resume_from == Checkpoint(3, "a.pt", 1.5)
    assert all(vars(issue).values())
    assert all(vars(issue.symptoms[0]).values())
    assert Issue.from_dict(issue.to_dict()) == issue
    assert Issue.from_dict(json.loads(json.dumps(issue.to_dict()))) == issue


@pytest.mark.parametrize("odd", [None, 7, "text", True, {"a": 1}, 2.5])
def test_an_issue_of_odd_json_has_nothing_that_was_not_there(odd):
    payload = dict.fromkeys(
        ("since", "last", "where", "workers", "why", "try", "rules", "symptoms", "resume_from"), odd
    )
    known = odd if type(odd) is int else 0
    assert Issue.from_dict(payload | {"unknown": 1}) == Issue("", "", known, known)
    payload = {"cause": "spike", "symptoms": [7, {"cause": "scaler", "since": odd, "where": odd}]}
    known_symptom = Symptom("scaler", "", known, 0)
    assert Issue.from_dict(payload) == Issue("spike", "", 0, 0, symptoms=(known_symptom,))


def test_the_patterns_name_known_causes_and_have_no_cycles():
    named = {cause for pattern in PATTERNS for cause in (pattern.cause, pattern.symptom)}
    assert named <= set(CAUSES) == set(TITLES)
    graph: dict[str, set[str]] = {}
    for pattern in PATTERNS:
        graph.setdefault(pattern.symptom, set()).add(pattern.cause)
    assert list(TopologicalSorter(graph).static_order())
    assert all(pattern.because for pattern in PATTERNS)
