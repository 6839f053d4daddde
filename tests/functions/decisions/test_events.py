"""Published events: their schema, their size, and one id for one cause."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from functions.decisions.detail_types import CONDITION_MET, DETAIL_TYPES, OLD_STATE_CHANGE
from functions.decisions.event_sizes import MAX_DETAIL, worst
from functions.decisions.outbox import id_of, when
from functions.decisions.publishing import put_events_entries
from functions.decisions.rule_lifecycle import judge
from functions.decisions.run_events import (
    old_state_change,
    run_entry,
    run_state_changed,
    summary_of,
)
from smdebug.rules.outcomes import Found
from smdebug.service.records import RuleConfiguration, RuleRecord, RuleStatus
from tests.functions.decisions.sample_events import (
    FINDINGS,
    NOON,
    RUN,
    VANISHING,
    every_kind,
    moment,
    rule,
)

DOCS = Path(__file__).parents[3] / "docs"
KINDS = every_kind()


@cache
def schema_of(detail_type):
    name = detail_type.lower().replace(" ", "-")
    return json.loads((DOCS / "events" / f"{name}.json").read_text(encoding="utf-8"))


def published(entry):
    (sent,) = put_events_entries({entry.id: entry.as_item()}, now=NOON + 2.7)
    return json.loads(sent["Detail"])


def complaints_about(detail_type, detail):
    return [error.message for error in Draft202012Validator(schema_of(detail_type)).iter_errors(detail)]


def found(findings, configuration=VANISHING, at=None, **more):
    verdict = judge(rule(configuration), configuration, Found(tuple(findings)), at or moment(**more))
    return verdict.outbox[0]


@pytest.mark.parametrize("detail_type", DETAIL_TYPES)
def test_every_kind_of_event_has_a_schema_and_an_example(detail_type):
    schema = schema_of(detail_type)
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == detail_type
    assert schema["additionalProperties"] is False
    assert detail_type in {entry.detail_type for entry in KINDS.values()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_matches_its_schema(kind):
    entry = KINDS[kind]
    assert not complaints_about(entry.detail_type, entry.detail)
    assert not complaints_about(entry.detail_type, published(entry))


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_rejects_missing_and_unknown_fields(kind):
    entry = KINDS[kind]
    lacking = {key: value for key, value in entry.detail.items() if key != "id"}
    assert complaints_about(entry.detail_type, lacking)
    assert complaints_about(entry.detail_type, {**entry.detail, "surprise": 1})


@pytest.mark.parametrize("kind", ["found", "resolved", "error", "finished", "action", "old"])
def test_the_documentation_shows_what_is_sent(kind):
    page = (DOCS / "events.md").read_text(encoding="utf-8")
    example = json.dumps(published(KINDS[kind]), indent=2, ensure_ascii=False)
    assert f"```json\n{example}\n```" in page


def test_a_finding_carries_the_times_from_saving_to_publishing():
    assert published(KINDS["found"])["times"] == {
        "saved": "2026-11-21T12:00:00.120Z",
        "uploaded": "2026-11-21T12:00:00.900Z",
        "indexed": "2026-11-21T12:00:01.600Z",
        "evaluated": "2026-11-21T12:00:02.400Z",
        "published": "2026-11-21T12:00:02.700Z",
    }
    assert when(None) is None


def test_the_same_cause_has_the_same_id_and_any_other_another():
    assert found(FINDINGS).id == found(FINDINGS[:1], evaluated=NOON + 99).id
    others = [
        found(FINDINGS, step=401),
        found(FINDINGS, training_run=1),
        found(FINDINGS, at=replace(moment(), run="my-bucket/mnist-2")),
        found(FINDINGS, replace(VANISHING, parameters={"threshold": "1"})),
        KINDS["issues found"],
    ]
    assert len({found(FINDINGS).id, *(entry.id for entry in others)}) == len(others) + 1


def test_parts_of_an_id_cannot_be_shifted_into_each_other():
    assert id_of("a", 1, "b", 2, "c") != id_of("a", 1, "b2", 2, "c")
    assert id_of("a", 0, 'b", 1', 1, "c") != id_of("a", 0, "b", 1, '1", "c')


def test_the_outbox_entry_of_a_run_state_can_be_rebuilt():
    known, kept = run_entry(RUN, "begin", NOON)
    assert (known, kept["detail_type"]) == (
        run_entry(RUN, "begin", NOON + 5)[0],
        "Run State Change",
    )
    assert json.loads(kept["detail"])["state"] == "Running"
    assert known != run_entry(RUN, "silent-3", NOON)[0]


def test_an_event_has_the_worst_findings_and_all_are_kept_beside_the_run():
    many = [{"tensor": f"t{n}", "value": 10.0**-n, "threshold": 1.0} for n in range(1, 101)]
    entry = found(many)
    evidence = entry.detail["evidence"]
    assert evidence["count"] == 100
    assert [finding["tensor"] for finding in evidence["worst"]] == [f"t{n}" for n in range(100, 80, -1)]
    assert evidence["rest"] == f"s3://my-bucket/mnist-1/report/findings/{entry.id}.finding"
    assert entry.overflow.key == f"report/findings/{entry.id}.finding"
    kept = json.loads(entry.overflow.body)
    assert kept["count"] == len(kept["findings"]) == 100
    assert found(FINDINGS).overflow is None


def test_the_worst_is_what_is_farthest_beyond_its_limit():
    def finding(value, limit=None):
        return {"value": value, "threshold": limit}

    ordered = [
        finding("NaN"),
        finding("Infinity", 1.0),
        finding(0, 1e-7),
        finding(1e6, 1.0),
        finding(1e-9, 1e-7),
        finding(2.0, 1.0),
        finding(5),
        finding("text", 1),
        {},
        finding(True),
    ]
    assert worst(ordered, 20) == ordered
    assert worst(list(reversed(ordered[2:6])), 20) == ordered[2:6]


HUGE = "x" * 100_000


def test_an_event_that_is_too_large_is_cut_and_marked():
    findings = [
        {"tensor": HUGE + str(n), "message": HUGE, "value": HUGE, "details": {"a": HUGE}} for n in range(20)
    ]
    parameters = {f"parameter_{n}_{'y' * 200}": "ü" * 2000 for n in range(100)}
    entry = found(findings, RuleConfiguration("n" * 250, "MyRule", parameters))
    assert len(json.dumps(entry.detail).encode()) < 1.2 * MAX_DETAIL
    assert entry.detail["cut"][0] == "configuration.parameters"
    assert not complaints_about(CONDITION_MET, entry.detail)
    assert entry.detail["evidence"]["worst"][0]["tensor"].endswith("…")
    assert entry.detail["evidence"]["worst"][0]["details"] == {"left_out": "100008 bytes"}


def test_a_run_with_many_rules_has_its_summary_and_its_old_event_cut():
    rules = [RuleRecord(f"{n}", "n" * 250, RuleStatus.ERROR, "w" * 1024) for n in range(100)]
    summary = summary_of(
        [(RuleConfiguration("n", "N"), record) for record in rules], steps=1, not_evaluated=3
    )
    assert summary["statuses"] == {"Error": 100}
    old = old_state_change(RUN, rules, NOON)
    assert len(json.dumps(old.detail)) < MAX_DETAIL
    assert old.detail["cut"] == ["DebugRuleEvaluationStatuses"]
    assert not complaints_about(OLD_STATE_CHANGE, old.detail)
    whole = run_state_changed(RUN, "x", NOON, summary=summary)
    assert len(json.dumps(whole.detail)) < 1.05 * MAX_DETAIL


def test_the_summary_of_a_run_that_lost_steps_matches_the_schema_and_is_incomplete():
    passed = RuleRecord("1", "rule", RuleStatus.NO_ISSUES_FOUND)
    lost = summary_of([(VANISHING, passed)], steps=3, lost_steps="24 steps could not be written")
    whole = summary_of([(VANISHING, passed)], steps=3)
    unread = summary_of([(VANISHING, passed)], steps=3, unread_steps="Step 1 cannot be read")
    assert (lost["verdict"], whole["verdict"]) == ("Incomplete", "NoIssuesFound")
    assert (unread["verdict"], unread["unread_steps"]) == ("Incomplete", "Step 1 cannot be read")
    for summary in (lost, unread, whole):
        event = run_state_changed(RUN, "x", NOON, summary=summary)
        assert not complaints_about("Run State Change", event.detail)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "value": PLAIN,
                "threshold": PLAIN,
                "details": st.dictionaries(st.text(max_size=5), PLAIN, max_size=3),
                "message": st.text(max_size=600),
                "tensor": st.text(max_size=600),
                "surprise": PLAIN,
            },
        ),
        max_size=30,
    )
)
def test_events_match_the_schema_whatever_a_rule_finds(findings):
    entry = found(findings)
    assert not complaints_about(CONDITION_MET, entry.detail)
    assert published(entry)["id"] == entry.id
    if entry.overflow is not None:
        assert json.loads(entry.overflow.body)["count"] == len(findings)


def test_the_old_event_is_one_that_a_function_written_for_sagemaker_can_read():
    detail = published(KINDS["old"])
    issues = [
        status["RuleConfigurationName"]
        for status in detail["DebugRuleEvaluationStatuses"]
        if status["RuleEvaluationStatus"] == "IssuesFound"
    ]
    assert (detail["TrainingJobName"], issues) == ("mnist-1", ["fc-gradients"])
    assert "RuleEvaluationConditionMet" in detail["DebugRuleEvaluationStatuses"][0]["StatusDetails"]
