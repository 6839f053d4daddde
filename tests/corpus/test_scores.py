import re

import pytest

from corpus.cases import Fault, Program, layer, tensor
from corpus.measuring import publish
from corpus.measuring.judging import Alarm, Judged, as_alarm
from corpus.measuring.page import blame, disturbed, misses, summary
from corpus.measuring.scores import NONE, Scores, Share, Verdict, tallies, visible_steps
from smdebug.diagnosis.issues import Issue, Symptom
from smdebug.runs.evaluation.rule_results import RuleResult, StepFindings
from smdebug.service.records import RuleStatus

STEPS = tuple((step, "TRAIN", step) for step in (*range(10), *range(10, 101, 10)))


def fault(**changes):
    given = {"cause": "corruption", "place": r"\b3\.weight", "visible_from": 60, "onset": 60}
    return Fault("a fault", "pytorch", False, lambda seed, faulty: None, source="x", **given | changes)


def program(name="a program", held_out=False):
    return Program(name, "pytorch", held_out, lambda seed: None)


def alarm(**changes):
    given = {"rule": "Corruption", "cause": "corruption", "places": ("3.weight",), "message": "x"}
    return Alarm(**given | {"step": 60, "since": 60} | changes)


def verdict(*alarms, case=None, kind="faulty", seed=0):
    return Verdict(case or fault(), kind, seed, Judged(alarms, STEPS))


def test_a_fault_is_named_right_by_its_cause_and_its_place():
    assert verdict(alarm()).right
    assert not verdict(alarm(cause="spike")).right
    assert not verdict(alarm(places=("0.weight", "worker_0"))).right
    assert verdict(alarm(cause="spike"), case=fault(also=("spike",))).right


def test_any_alarm_of_a_faulty_run_finds_the_fault_but_does_not_name_it():
    wrong = verdict(alarm(cause="spike"))
    assert wrong.is_found
    assert not wrong.right
    assert wrong.named == "spike"
    assert verdict().named == NONE


def test_an_alarm_without_a_cause_is_named_by_its_rule():
    assert verdict(alarm(cause="", rule="Overfit")).named == "Overfit"


@pytest.mark.parametrize(("since", "is_prompt"), [(60, True), (51, True), (50, False), (70, False)])
def test_the_first_visible_step_is_named_within_no_saved_step(since, is_prompt):
    assert verdict(alarm(since=since)).is_prompt is is_prompt


def test_a_step_between_two_saved_ones_counts_as_the_next_saved_one():
    between = fault(visible_from=63, onset=63)
    assert visible_steps(between, STEPS) == (61, 70)


def test_a_fault_there_from_the_start_may_be_dated_to_its_start():
    from_start = fault(visible_from=5, onset=0)
    assert visible_steps(from_start, STEPS) == (0, 5)


def test_no_step_is_right_if_none_was_saved_at_which_the_fault_shows():
    late = fault(visible_from=200, onset=200)
    assert not verdict(alarm(since=100), case=late).is_prompt


def test_a_step_counts_in_the_mode_in_which_the_fault_shows():
    steps = ((0, "TRAIN", 0), (22, "TRAIN", 22), (23, "EVAL", 0), (24, "TRAIN", 23))
    assert visible_steps(fault(visible_in="EVAL", visible_from=0, onset=0), steps) == (0, 23)


def test_a_run_without_modes_has_one_for_all():
    steps = tuple((step, "GLOBAL", step) for step in range(0, 40, 10))
    assert visible_steps(fault(visible_from=15, onset=0), steps) == (0, 20)


def test_only_alarms_of_healthy_runs_are_false():
    scores = Scores.of(
        (
            verdict(alarm(), case=program(), kind="healthy"),
            verdict(case=program(), kind="healthy", seed=1),
            verdict(alarm(), kind="twin"),
            verdict(alarm()),
        )
    )
    assert (scores.false_alarms.count, scores.false_alarms.total) == (1, 2)
    assert (scores.twins.count, scores.twins.total) == (1, 1)
    assert scores.blamed == {"Corruption: corruption": 2}
    assert "a program" in "\n".join(disturbed(scores))
    assert any("Corruption" in line for line in blame(scores))


def test_a_fault_missed_with_one_seed_is_listed():
    scores = Scores.of((verdict(alarm()), verdict(seed=1), verdict(alarm(), seed=2)))
    assert (scores.found.count, scores.found.total) == (2, 3)
    assert any("a fault" in line and "1/3" in line and NONE in line for line in misses(scores))


def test_the_two_halves_are_counted_apart():
    scores = Scores.of(
        (
            verdict(alarm(), case=program(), kind="healthy"),
            verdict(case=program("another", held_out=True), kind="healthy"),
        )
    )
    assert scores.where(half="tuning").false_alarms.count == 1
    assert scores.where(half="held out").false_alarms.count == 0
    assert "1/2 (50 %)" in "\n".join(summary(scores))


@pytest.mark.parametrize(
    ("count", "total", "bound"),
    [(0, 240, 0.0124), (0, 10, 0.2589), (1, 240, 0.0196), (5, 50, 0.1991), (3, 3, 1.0)],
)
def test_the_bound_is_that_of_clopper_and_pearson(count, total, bound):
    assert Share(count, total).upper_bound == pytest.approx(bound, abs=1e-3)


def test_an_issue_names_the_places_of_its_first_findings_and_keeps_its_symptoms():
    def at(step, *findings):
        return StepFindings(step, "TRAIN", step, len(findings), findings)

    found = (
        at(10, *({"cause": "spike", "tensor": name, "message": "m", "since": 7} for name in "abcd")),
        at(20, {"cause": "spike", "tensor": "e", "worker": "worker_1", "message": "n"}),
    )
    result = RuleResult("R", "R", {}, RuleStatus.ISSUES_FOUND, found=found)
    issue = Issue(
        "spike",
        "what",
        7,
        20,
        workers=("worker_1",),
        rules=("R",),
        symptoms=(Symptom("exploding", "", 8, 9),),
    )
    alarm = as_alarm(issue, [result])
    assert (alarm.step, alarm.since, alarm.symptoms) == (10, 7, ("exploding",))
    assert alarm.places == ("a", "b", "c", "worker_1")


def test_an_issue_that_names_no_place_is_searched_by_its_sentence():
    issue = Issue("imbalance", "97 % of the labels are of class 0", 3, 3, rules=("R",))
    assert as_alarm(issue, []).places == ("97 % of the labels are of class 0",)


@pytest.mark.parametrize(
    "name", ["3.weight", "Sequential_3", "Sequential_3.bias", "gradient/Sequential_3.weight"]
)
def test_a_layer_is_found_in_the_names_of_its_tensors(name):
    assert re.search(layer("2", "3"), name)


@pytest.mark.parametrize("name", ["Sequential_13.bias", "Sequential_1_output_3", "worker_30"])
def test_a_layer_is_not_found_in_other_names(name):
    assert not re.search(layer("3"), name)


def test_a_tensor_is_found_by_the_end_of_its_name():
    assert re.search(tensor("3.weight"), "update/Sequential_3.weight")
    assert not re.search(tensor("3.weight"), "Sequential_3.bias")
    assert not re.search(tensor("3.weight"), "Sequential_13.weight")


def test_results_are_kept_for_each_set_of_rules(tmp_path):
    kept = tmp_path / "results.json"
    there_is = [("a fault", "faulty")]
    publish.write("default", tallies([verdict(alarm())]), kept, there_is)
    publish.write("all", tallies([verdict()]), kept, there_is)
    publish.write("default", tallies([verdict(alarm()), verdict(seed=1)]), kept, there_is)
    results = publish.read(kept)
    assert results["default"] == tuple(tallies([verdict(alarm()), verdict(seed=1)]))
    assert results["all"][0].alarmed == 0


def test_new_results_take_the_place_of_those_of_the_same_trainings(tmp_path):
    kept = tmp_path / "results.json"
    there_are = [("second", "healthy"), ("first", "healthy"), ("a fault", "faulty")]
    healthy = [verdict(case=program(name), kind="healthy") for name in ("first", "second", "gone")]
    publish.write("default", tallies([*healthy, verdict()]), kept, there_are)
    publish.write("default", tallies([verdict(alarm())]), kept, there_are)
    found = publish.read(kept)["default"]
    assert [(tally.name, tally.alarmed) for tally in found] == [
        ("second", 0),
        ("first", 0),
        ("a fault", 1),
    ]


def test_the_page_says_which_code_recorded_and_judged_how_many_runs():
    kept = publish.judged_by(tallies([verdict(), verdict(seed=1)]), "abc1234")
    page = publish.text({"default": tuple(kept)})
    assert re.search(r"\| earlier +\| abc1234 +\| 2 +\|", page)


def test_the_page_names_a_fault_that_was_missed_and_has_no_comment_left(tmp_path):
    page = publish.text({"default": tuple(tallies([verdict(), verdict(case=program(), kind="healthy")]))})
    assert "| a fault" in page
    assert "<!--" not in page
