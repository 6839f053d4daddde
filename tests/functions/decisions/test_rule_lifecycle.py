"""Issues open, stay open and are resolved; statuses change as SageMaker's do; each is published once."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from functions.decisions.detail_types import CONDITION_MET, ISSUE_RESOLVED, STATUS_CHANGE
from functions.decisions.rule_lifecycle import (
    Failed,
    Found,
    Moment,
    NothingToCheck,
    Passed,
    begin_again,
    fail,
    finish,
    judge,
    reopen,
    stop,
)
from smdebug.service.records import RuleConfiguration, RuleRecord, RuleStatus

STOP = {"name": "stoptraining"}
CONFIGURATION = RuleConfiguration("mine", "VanishingGradient", actions=(STOP,))
EVERY_STEP = replace(CONFIGURATION, repeat="every_step")
NEW = RuleRecord(CONFIGURATION.id, CONFIGURATION.name)
FOUND = Found(({"tensor": "w", "message": "w is small"},))


def at(step, **more):
    return Moment("bucket/run", step, evaluated=1000.0 + step, **more)


def after(*outcomes, configuration=CONFIGURATION, rule=NEW):
    """Return the rule after those outcomes at steps 0, 1, …, and all events."""
    events = []
    for step, outcome in enumerate(outcomes):
        rule, outbox = judge(rule, configuration, outcome, at(step))
        events += outbox
    return rule, events


def types(events):
    return [entry.detail_type for entry in events]


def test_the_first_finding_opens_an_issue_and_is_published_with_actions():
    rule, events = after(Passed(), FOUND)
    assert types(events) == [CONDITION_MET, STATUS_CHANGE]
    assert (rule.status, rule.issue_since, rule.last_good) == (RuleStatus.ISSUES_FOUND, 1, 0)
    assert rule.changed_at == 1001.0
    assert rule.reason == (
        "RuleEvaluationConditionMet: Evaluation of the rule VanishingGradient at step 1 "
        "resulted in the condition being met"
    )
    detail = events[0].detail
    assert detail["evidence"]["worst"] == [{"tensor": "w", "message": "w is small"}]
    assert detail["actions"] == [STOP]
    assert {
        "id": detail["issue"]["id"],
        "role": "cause",
        "since": 1,
        "last_found": 1,
        "open": True,
    } == detail["issue"]
    assert detail["last_good_step"] == 0


def test_while_an_issue_is_open_nothing_is_repeated():
    rule, events = after(FOUND, FOUND, NothingToCheck(), FOUND)
    assert types(events) == [CONDITION_MET, STATUS_CHANGE]
    assert (rule.issue_since, rule.last_found) == (0, 3)


def test_every_step_is_published_if_configured_and_acted_upon_once():
    _, events = after(FOUND, FOUND, FOUND, configuration=EVERY_STEP)
    assert types(events) == [CONDITION_MET, STATUS_CHANGE, CONDITION_MET, CONDITION_MET]
    findings = [entry.detail for entry in events if entry.detail_type == CONDITION_MET]
    assert [finding["has_actions"] for finding in findings] == [True, False, False]
    assert [finding["issue"]["since"] for finding in findings] == [0, 0, 0]


def test_only_a_clear_step_resolves_an_issue():
    rule, events = after(FOUND, NothingToCheck(), NothingToCheck())
    assert rule.has_open_issue
    rule, events = after(FOUND, NothingToCheck(), Passed())
    assert types(events) == [CONDITION_MET, STATUS_CHANGE, ISSUE_RESOLVED]
    assert {
        "id": events[-1].detail["issue"]["id"],
        "role": "cause",
        "since": 0,
        "last_found": 0,
        "open": False,
    } == events[-1].detail["issue"]
    assert not rule.has_open_issue
    assert rule.status is RuleStatus.ISSUES_FOUND


def test_a_reopened_issue_is_published_again_but_not_the_status():
    rule, events = after(FOUND, Passed(), FOUND)
    assert types(events) == [CONDITION_MET, STATUS_CHANGE, ISSUE_RESOLVED, CONDITION_MET]
    assert events[0].id != events[-1].id
    assert rule.reason.endswith("at step 2 resulted in the condition being met")


def test_a_rule_that_did_not_look_is_as_it_was():
    for before, _ in (after(), after(Passed()), after(FOUND), after(Failed("x"))):
        assert judge(before, CONFIGURATION, NothingToCheck(), at(9)) == (before, ())


def test_a_rule_that_raises_is_an_error_with_step_and_message_and_is_not_asked_again():
    rule, events = after(Passed(), Failed("KeyError: 'w'"), FOUND, Passed())
    assert types(events) == [STATUS_CHANGE]
    assert (rule.status, rule.reason) == (RuleStatus.ERROR, "at step 1: KeyError: 'w'")
    assert events[0].detail["previous_status"] == "InProgress"


def test_an_error_of_any_length_fits_into_a_status():
    rule, events = after(Failed("x" * 5000))
    assert len(rule.reason) == len(events[0].detail["reason"]) == 1024


def test_what_was_there_before_the_rule_leads_to_no_actions():
    rule = replace(NEW, catch_up_through=5)
    rule, events = judge(rule, CONFIGURATION, FOUND, at(3, catch_up=True))
    assert events[0].detail["catch_up"] is True
    assert events[0].detail["actions"] == []
    assert events[0].detail["has_actions"] is False
    # It is still so when the rule has caught up: now something is done about it, once.
    rule, events = judge(rule, CONFIGURATION, FOUND, at(6))
    assert types(events) == [CONDITION_MET]
    assert events[0].detail["actions"] == [STOP]
    assert events[0].detail["issue"]["since"] == 3
    assert judge(rule, CONFIGURATION, FOUND, at(7)).outbox == ()


def test_a_late_finding_is_published_but_not_acted_upon():
    rule, _ = judge(NEW, CONFIGURATION, Passed(), at(9))
    rule, events = judge(rule, CONFIGURATION, FOUND, at(5, late=True))
    assert types(events) == [CONDITION_MET, STATUS_CHANGE]
    assert events[0].detail["late"] is True
    assert events[0].detail["actions"] == []
    assert {
        "id": events[0].detail["issue"]["id"],
        "role": "cause",
        "since": None,
        "last_found": 5,
        "open": False,
    } == events[0].detail["issue"]
    assert not rule.has_open_issue


def test_a_late_clear_step_does_not_resolve_what_a_later_one_found():
    rule, _ = judge(NEW, CONFIGURATION, FOUND, at(9))
    rule, events = judge(rule, CONFIGURATION, Passed(), at(5, late=True))
    assert (rule.issue_since, rule.last_good, events) == (9, 5, ())
    rule, events = judge(rule, CONFIGURATION, Passed(), at(10))
    assert types(events) == [ISSUE_RESOLVED]


def test_a_late_finding_of_an_issue_that_is_open_makes_it_older():
    rule, _ = judge(NEW, CONFIGURATION, FOUND, at(9))
    rule, events = judge(rule, CONFIGURATION, FOUND, at(5, late=True))
    assert (rule.issue_since, rule.last_found, events) == (5, 9, ())


def test_at_the_end_a_rule_without_findings_passes_and_issues_stay():
    rule, _ = after(Passed())
    finished, events = finish(rule, CONFIGURATION, at(1), evaluated=1, unseen=0)
    assert (finished.status, types(events)) == (RuleStatus.NO_ISSUES_FOUND, [STATUS_CHANGE])
    assert finish(finished, CONFIGURATION, at(1), evaluated=1, unseen=0) == (finished, ())
    for rule, _ in (after(FOUND), after(FOUND, Passed()), after(Failed("x"))):
        assert finish(rule, CONFIGURATION, at(2), evaluated=1, unseen=0) == (rule, ())


def test_a_rule_that_never_had_data_reports_it_at_the_end():
    rule, _ = after(NothingToCheck(), NothingToCheck())
    rule, events = finish(rule, CONFIGURATION, at(2), evaluated=1, unseen=0)
    assert "check which tensors are saved" in rule.reason
    assert events[0].detail["reason"] == rule.reason


def test_finished_rules_are_evaluated_again_when_the_run_continues():
    finished = finish(after(Passed())[0], CONFIGURATION, at(1), evaluated=1, unseen=0).rule
    rule, events = reopen(finished, CONFIGURATION, at(1))
    assert (rule.status, types(events)) == (RuleStatus.IN_PROGRESS, [STATUS_CHANGE])
    for other, _ in (after(FOUND), after(Failed("x")), after()):
        assert reopen(other, CONFIGURATION, at(1)) == (other, ())


def test_a_rule_that_is_not_wanted_any_longer_is_stopped():
    rule, events = stop(after(FOUND)[0], CONFIGURATION, "rules.json was changed", at(1))
    assert (rule.status, types(events)) == (RuleStatus.STOPPED, [STATUS_CHANGE])
    assert judge(rule, CONFIGURATION, Passed(), at(2)) == (rule, ())
    assert stop(rule, CONFIGURATION, "again", at(2)) == (rule, ())
    assert fail(rule, CONFIGURATION, "no", at(2)) == (rule, ())


def test_a_stopping_rule_has_stopped_when_the_run_ends():
    rule = replace(NEW, status=RuleStatus.STOPPING, reason="not wanted")
    rule, events = finish(rule, CONFIGURATION, at(1), evaluated=1, unseen=0)
    assert (rule.status, rule.reason, len(events)) == (RuleStatus.STOPPED, "not wanted", 1)


def test_a_restarted_training_is_evaluated_again_and_its_issue_stays_open():
    before = replace(after(Passed(), FOUND)[0], state=b"seen", state_key="k")
    rule, events = begin_again(before, CONFIGURATION, at(0, training_run=1))
    assert events == ()
    assert (rule.state, rule.state_key, rule.last_good, rule.last_found) == (b"", "", None, None)
    assert rule.has_open_issue
    rule, events = judge(rule, CONFIGURATION, Passed(), at(0, training_run=1))
    assert types(events) == [ISSUE_RESOLVED]


LEGAL = {
    RuleStatus.IN_PROGRESS: {"NoIssuesFound", "NotChecked", "IssuesFound", "Error", "Stopped"},
    RuleStatus.NO_ISSUES_FOUND: {"InProgress", "IssuesFound", "Error", "Stopped"},
    RuleStatus.NOT_CHECKED: {"InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopped"},
    RuleStatus.ISSUES_FOUND: {"Error", "Stopped"},
    RuleStatus.ERROR: set(),
    RuleStatus.STOPPED: set(),
}

OUTCOMES = st.sampled_from([FOUND, Found(), Passed(), NothingToCheck(), Failed("it broke")])


class RunOfARule(RuleBasedStateMachine):
    """Steps in order and late ones, an end, a restart: the rule's record is always consistent."""

    @initialize(repeat=st.sampled_from([None, "every_step"]), attached_at=st.integers(-1, 5))
    def begin(self, repeat, attached_at):
        self.configuration = replace(CONFIGURATION, repeat=repeat)
        self.rule = replace(NEW, catch_up_through=attached_at)
        self.step = -1
        self.opened = 0  # issues told of and not told to be resolved
        self.ids = set()
        self.acted_in_issue = 0
        self.skipped = []

    def take(self, verdict):
        for entry in verdict.outbox:
            assert entry.id not in self.ids or entry.detail_type == STATUS_CHANGE
            self.ids.add(entry.id)
            if entry.detail_type == STATUS_CHANGE:
                before = RuleStatus(entry.detail["previous_status"])
                assert before is self.rule.status
                assert entry.detail["status"] in LEGAL[before]
                assert entry.detail["status"] == verdict.rule.status
            if entry.detail_type == ISSUE_RESOLVED:
                assert self.opened == 1
                self.opened = 0
                self.acted_in_issue = 0
            if entry.detail_type == CONDITION_MET:
                self.opened = int(entry.detail["issue"]["open"])
                self.acted_in_issue += entry.detail["has_actions"]
                assert not (entry.detail["catch_up"] and entry.detail["has_actions"])
                assert self.acted_in_issue <= 1
        changed = verdict.rule.status is not self.rule.status
        assert changed == any(entry.detail_type == STATUS_CHANGE for entry in verdict.outbox)
        self.rule = verdict.rule

    @rule(outcome=OUTCOMES)
    def look(self, outcome):
        self.step += 1
        moment = at(self.step, catch_up=self.step <= self.rule.catch_up_through)
        once = judge(self.rule, self.configuration, outcome, moment)
        assert once == judge(self.rule, self.configuration, outcome, moment)
        if outcome == NothingToCheck():
            assert once == (self.rule, ())
        self.take(once)

    @rule()
    def skip(self):
        self.step += 1
        self.skipped.append(self.step)

    @precondition(lambda self: self.skipped)
    @rule(outcome=OUTCOMES, data=st.data())
    def look_late(self, outcome, data):
        step = data.draw(st.sampled_from(self.skipped))
        self.skipped.remove(step)
        catch_up = step <= self.rule.catch_up_through
        late = step < self.step
        self.take(judge(self.rule, self.configuration, outcome, at(step, late=late, catch_up=catch_up)))

    @rule()
    def end(self):
        self.take(finish(self.rule, self.configuration, at(max(self.step, 0)), evaluated=1, unseen=0))
        assert self.rule.status is not RuleStatus.IN_PROGRESS

    @rule()
    def go_on(self):
        self.take(reopen(self.rule, self.configuration, at(max(self.step, 0))))

    @rule()
    def detach(self):
        self.take(stop(self.rule, self.configuration, "changed", at(max(self.step, 0))))
        assert self.rule.status.is_final

    @invariant()
    def published_events_match_the_records(self):
        if not hasattr(self, "rule"):
            return
        assert self.rule.has_open_issue == bool(self.opened)
        if self.rule.has_open_issue:
            assert self.rule.issue_since <= self.rule.last_found
        if self.rule.last_found is not None and not self.rule.status.is_final:
            assert self.rule.status is RuleStatus.ISSUES_FOUND


TestARunOfARule = RunOfARule.TestCase
TestARunOfARule.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)


@given(st.lists(OUTCOMES, max_size=12))
def test_the_same_steps_publish_the_same_in_the_same_order(outcomes):
    first, second = after(*outcomes), after(*outcomes)
    assert [entry.id for entry in first[1]] == [entry.id for entry in second[1]]
    assert first == second


@pytest.mark.parametrize("status", RuleStatus)
def test_every_status_can_be_finished_and_stopped(status):
    rule = replace(NEW, status=status)
    assert finish(rule, CONFIGURATION, at(0), evaluated=1, unseen=0).rule.status is not RuleStatus.STOPPING
    assert stop(rule, CONFIGURATION, "x", at(0)).rule.status.is_final


def test_a_rule_says_what_the_run_lacks_for_it_until_it_has_checked_something():
    lacking = NothingToCheck("no validation loss was saved")
    rule, events = after(lacking)
    assert (rule.reason, events) == ("Not checked: no validation loss was saved", [])
    ended = finish(rule, CONFIGURATION, at(9), evaluated=2, unseen=0).rule
    assert ended.reason == "The run ended. Not checked: no validation loss was saved"
    for outcomes in ((Passed(), lacking), (lacking, Passed())):
        assert after(*outcomes)[0].reason == ""
