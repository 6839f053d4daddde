"""What a person is told of runs, from the records that the functions have written."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from functions.followup.action_outcomes import OutcomesInIndex
from smdebug.exceptions import (
    RulesFileError,
    RuleUnknown,
    RunUnknown,
    SMDebugRuntimeError,
    SMDebugValueError,
    StackUnknown,
    StorageUnavailable,
    WaitedTooLong,
)
from smdebug.service import items
from smdebug.service.records import GroupRecord, RuleConfiguration, RuleStatus, RunState
from smdebug.service.rules_file import parse_rules
from smdebug.service.step_status import StepState
from smdebug.storage.memory import MemoryStorage
from tests.service.stocked import BEGUN, LOSS, OWN, RUN, VANISHING, Stock, ill, ill_run, rule


@pytest.fixture
def stock() -> Stock:
    return Stock()


# Runs


def test_runs_are_listed_the_newest_first_those_that_are_over_too(stock):
    stock.begin("b/old", first_seen=BEGUN)
    stock.begin("b/over", first_seen=BEGUN + 1, state=RunState.FINISHED)
    (over,) = (one for one in stock.index.watched_runs() if one.run == "b/over")
    stock.index.unlist_run(over)
    stock.begin("b/new", first_seen=BEGUN + 2)
    assert [one.run for one in stock.debugger.runs()] == ["b/new", "b/over", "b/old"]
    assert [one.run for one in stock.debugger.runs(watched=True)] == ["b/new", "b/old"]


def test_a_run_in_the_list_says_how_far_it_is_and_how_its_rules_stand(stock):
    stock.begin(job="train-1", num_workers=4)
    stock.group(ill(VANISHING, 20), rule(LOSS, last_good=30), cursor=30)
    (one,) = stock.debugger.runs()
    assert (one.run, one.state, one.job, one.workers) == (RUN, RunState.RUNNING, "train-1", 4)
    assert one.first_seen == datetime(2025, 11, 21, 6, 38, 36, tzinfo=UTC)
    assert one.evaluated_through == 30
    assert one.rules == {RuleStatus.ISSUES_FOUND: 1, RuleStatus.IN_PROGRESS: 1}
    assert one.open_issues == 1
    assert one.to_dict()["rules"] == {"IssuesFound": 1, "InProgress": 1}
    assert one.to_dict()["first_seen"] == "2025-11-21T06:38:36.000Z"


def test_a_debugger_that_has_seen_nothing_says_so(stock):
    assert stock.debugger.runs() == []
    assert repr(stock.debugger.runs()) == "No runs yet."


def test_a_listed_run_without_a_record_is_left_out(stock):
    stock.index.list_run("b/not-yet", BEGUN)
    assert stock.debugger.runs() == []


@pytest.mark.parametrize(
    "name", [f"s3://{RUN}", RUN, f"s3://{RUN}/", f" {RUN}", "teams/resnet", "train-1"]
)
def test_a_run_is_found_by_its_place_below_the_stacks_bucket_and_by_its_job(stock, name):
    stock.begin(job="train-1")
    stock.index.note_job("train-1", RUN)
    assert stock.run(name).run == RUN


def test_the_root_of_a_bucket_is_a_run(stock):
    stock.begin("my-bucket")
    assert stock.run("s3://my-bucket").location == "s3://my-bucket"
    assert stock.run("").run == "my-bucket"


def test_of_a_run_that_is_not_known_the_nearest_is_named(stock):
    stock.begin()
    with pytest.raises(RunUnknown, match=rf"Did you mean {RUN}\?") as caught:
        stock.run("s3://my-bucket/teams/resnett")
    assert caught.value.nearest == RUN
    with pytest.raises(RunUnknown) as caught:
        stock.run("nothing-like-it")
    assert caught.value.nearest is None


# Statuses


def test_rules_stand_in_the_order_of_their_configurations_those_that_have_not_looked_too(stock):
    stock.begin(wanted=(VANISHING, OWN, LOSS))
    stock.group(rule(LOSS, last_good=7), ill(VANISHING, 3, last_good=2), cursor=7)
    fc, mine, loss = stock.run().statuses()
    assert [fc.name, mine.name, loss.name] == ["fc", "mine", "loss"]
    assert (fc.status, fc.issue_since, fc.last_good) == (RuleStatus.ISSUES_FOUND, 3, 2)
    assert fc.has_open_issue
    assert fc.reason.startswith("RuleEvaluationConditionMet")
    assert (mine.status, mine.evaluated_through, mine.group) == (RuleStatus.IN_PROGRESS, None, "")
    assert (loss.rule, loss.evaluated_through, loss.group) == ("LossNotDecreasing", 7, "builtin")
    assert fc.parameters == {"threshold": "1e-6"}


def test_a_detached_rule_comes_last_and_keeps_its_class(stock):
    stock.begin(wanted=(LOSS,), detached=(VANISHING,))
    stock.group(rule(VANISHING, status=RuleStatus.STOPPED, reason="detached"), rule(LOSS), cursor=1)
    loss, fc = stock.run().statuses()
    assert (loss.attached, fc.attached) == (True, False)
    assert (fc.rule, fc.status) == ("VanishingGradient", RuleStatus.STOPPED)
    assert stock.run().look().summary.rules == {RuleStatus.IN_PROGRESS: 1}


def test_a_rule_in_a_lane_of_its_own_is_told_once_and_said_to_be_catching_up(stock):
    stock.begin(groups=("builtin", f"lane-{LOSS.id}"))
    stock.group(rule(VANISHING), rule(LOSS, last_good=9), cursor=50)
    stock.group(rule(LOSS, catch_up_through=50, last_good=2), group=f"lane-{LOSS.id}", cursor=2)
    fc, loss = stock.run().statuses()
    assert (fc.catching_up, fc.evaluated_through) == (False, 50)
    assert (loss.catching_up, loss.evaluated_through, loss.last_good) == (True, 2, 2)
    assert stock.run().look().evaluated_through == 50


def test_a_resumed_training_has_not_been_evaluated_before_its_rules_have_begun_anew(stock):
    stock.begin(training_run=1)
    stock.group(rule(VANISHING), rule(LOSS), cursor=50, training_run=0)
    assert stock.run().look().evaluated_through is None


def test_a_rule_is_named_by_name_id_or_class(stock):
    stock.begin()
    run = stock.run()
    assert run.status("fc") == run.status(VANISHING.id) == run.status("VanishingGradient")


def test_a_class_that_two_rules_have_names_neither(stock):
    other = replace(VANISHING, name="conv", parameters={})
    stock.begin(wanted=(VANISHING, other))
    with pytest.raises(RuleUnknown, match="There are fc, conv"):
        stock.run().status("VanishingGradient")


def test_of_a_rule_that_is_not_there_the_nearest_is_named(stock):
    stock.begin()
    with pytest.raises(RuleUnknown, match=r"No rule los watches s3://.*Did you mean loss\?"):
        stock.run().status("los")


def test_the_statuses_have_the_fields_of_tornasoles_call(stock):
    stock.begin()
    stock.group(ill(VANISHING, 3), rule(LOSS), cursor=3)
    fc, loss = stock.run().describe_rule_execution_jobs()
    assert list(fc) == [
        *("RuleName", "RuleStatus", "FailureReason"),
        *("RuleExecutionJobName", "RuleExecutionJobArn"),
    ]
    assert (fc["RuleName"], fc["RuleStatus"]) == ("fc", "IssuesFound")
    assert "at step 3 resulted in the condition being met" in fc["FailureReason"]
    assert fc["RuleExecutionJobName"] == VANISHING.id
    assert loss["FailureReason"] == ""


def test_the_statuses_have_the_fields_of_sagemakers(stock):
    stock.begin()
    stock.group(ill(VANISHING, 3, changed_at=BEGUN + 5), cursor=3)
    fc, loss = stock.run().debug_rule_evaluation_statuses()
    assert fc["StatusDetails"].endswith("condition being met\n")
    assert len(fc["RuleEvaluationJobArn"]) <= 256
    assert fc["LastModifiedTime"] == datetime.fromtimestamp(BEGUN + 5, UTC)
    assert loss == {
        "RuleConfigurationName": "loss",
        "RuleEvaluationJobArn": f"smdebug:{LOSS.id}",
        "RuleEvaluationStatus": "InProgress",
        "LastModifiedTime": datetime.fromtimestamp(BEGUN, UTC),
    }
    assert stock.run().rule_job_summary() == [fc, loss]


def test_long_details_fit_into_sagemakers_limits(stock):
    stock.begin()
    stock.group(rule(VANISHING, status=RuleStatus.ERROR, reason="x" * 5000), cursor=3)
    fc, _ = stock.run().debug_rule_evaluation_statuses()
    assert len(fc["StatusDetails"]) == 1024


# Findings


def test_findings_come_in_the_order_of_steps(stock):
    stock.begin()
    for step in (10, 2, 30):
        stock.found(VANISHING, step)
    found = stock.run().findings()
    assert [one.step for one in found] == [2, 10, 30]
    first = found[0]
    assert (first.name, first.rule, first.mode, first.count) == (
        "fc",
        "VanishingGradient",
        "TRAIN",
        3,
    )
    assert (first.tensor, first.statistic, first.value) == ("gradient/fc", "abs_mean", 1e-9)
    assert first.last_good == 1
    assert first.to_dict()["evidence"]["worst"][0]["threshold"] == 1e-7


def test_findings_of_a_rule_since_a_step_the_last_few(stock):
    stock.begin()
    for step in range(20):
        stock.found(VANISHING if step % 2 else LOSS, step)
    run = stock.run()
    assert {one.rule for one in run.findings(rule="loss")} == {"LossNotDecreasing"}
    assert [one.step for one in run.findings(since_step=17)] == [17, 18, 19]
    assert [one.step for one in run.findings(limit=2)] == [18, 19]
    assert [one.step for one in run.findings(rule="fc", limit=2)] == [17, 19]
    assert [one.step for one in run.findings(rule=LOSS.id, since_step=17)] == [18]
    assert run.findings(limit=0) == []
    with pytest.raises(RuleUnknown):
        run.findings(rule="los")


@pytest.mark.parametrize("number", [199, 200, 201, 401])
def test_many_findings_come_whole_and_each_once(stock, number):
    stock.begin()
    for step in range(number):
        stock.found(VANISHING, step)
    assert [one.step for one in stock.run().findings()] == list(range(number))


def test_a_finding_that_tells_little_can_be_shown_all_the_same(stock):
    stock.begin()
    stock.index.put_finding(RUN, 4, "a", {"step": 4})
    (found,) = stock.run().findings()
    assert (found.step, found.tensor, found.count, found.name) == (4, None, 0, "")
    assert "4" in repr(stock.run().findings())


# Actions


def test_what_became_of_actions_is_told_in_the_order_in_which_it_happened(stock):
    stock.begin()
    stock.group(ill(VANISHING, 2), cursor=2)
    kept = OutcomesInIndex(stock.store)
    for number, finding in enumerate(["id-9", "id-2", "id-2"]):
        outcome = {
            "id": f"o{number}",
            "finding_id": finding,
            "action": {"name": "stoptraining"},
            "effect": "control",
            "done": number != 1,
            "settled": True,
            "message": f"message {number}",
            "at": BEGUN + number,
        }
        kept.record_action(RUN, "builtin", VANISHING.id, outcome, {})
    run = stock.run()
    assert [one.message for one in run.actions()] == ["message 0", "message 1", "message 2"]
    assert [one.done for one in run.actions("id-2")] == [False, True]
    first = run.actions()[0]
    assert (first.name, first.rule_id) == ("stoptraining", VANISHING.id)
    assert first.at == datetime.fromtimestamp(BEGUN, UTC)
    json.dumps(run.actions().to_dict())
    assert stock.begin("b/other")
    assert stock.run("b/other").actions() == []


# Steps


def test_a_step_names_the_workers_that_are_missing(stock):
    stock.begin(num_workers=3)
    stock.wrote(0, "worker_0", "worker_1", "worker_2")
    stock.wrote(10, "worker_0")
    stock.wrote(10, "worker_2", event_only=True)
    first, second = stock.run().steps()
    assert (first.step, first.state, first.missing) == (0, StepState.COMPLETE, ())
    assert first.workers == ("worker_0", "worker_1", "worker_2")
    assert (second.state, second.missing) == (StepState.INCOMPLETE, ("worker_1", "worker_2"))
    assert second.half_written == ("worker_2",)
    assert second.uploaded == datetime.fromtimestamp(BEGUN + 10, UTC)


def test_workers_with_names_of_devices_are_known_by_what_they_wrote(stock):
    stock.begin(num_workers=2)
    stock.wrote(0, "/device:GPU:0", "/device:GPU:1")
    stock.wrote(1, "/device:GPU:1")
    assert stock.run().steps()[1].missing == ("/device:GPU:0",)


def test_workers_are_in_the_order_of_their_numbers(stock):
    stock.begin(num_workers=200)
    stock.wrote(0, *(f"worker_{number}" for number in range(200) if number not in (9, 150)))
    (step,) = stock.run().steps()
    assert step.missing == ("worker_9", "worker_150")
    assert step.workers[:3] == ("worker_0", "worker_1", "worker_2")
    assert len(step.workers) == 198


def test_nobody_can_say_whether_a_step_is_complete_before_the_workers_are_counted(stock):
    stock.begin(num_workers=None)
    stock.wrote(0)
    assert stock.run().steps()[0].state is StepState.UNKNOWN


def test_an_incomplete_step_is_given_up_once_the_rules_have_gone_on_or_the_run_has_ended(stock):
    stock.begin(num_workers=2)
    stock.wrote(1, "worker_0")
    stock.wrote(2, "worker_0", "worker_1")
    stock.wrote(3, "worker_0")
    stock.group(rule(VANISHING), cursor=2, passed=frozenset({1}))
    states = [one.state.value for one in stock.run().steps()]
    assert states == ["given up", "complete", "incomplete"]
    stock.become(RunState.ENDED)
    assert stock.run().steps()[2].state is StepState.GIVEN_UP


def test_a_step_is_evaluated_once_every_group_but_the_lanes_has_seen_it(stock):
    stock.begin(wanted=(VANISHING, OWN))
    for step in range(4):
        stock.wrote(step)
    stock.group(rule(VANISHING), cursor=3, passed=frozenset({0, 1}), late_done=frozenset({1}))
    stock.group(rule(OWN), group=f"custom-{OWN.id}", cursor=2)
    stock.group(rule(LOSS), group=f"lane-{LOSS.id}", cursor=0)
    assert [one.evaluated for one in stock.run().steps()] == [False, True, True, False]


def test_in_a_run_of_the_old_library_each_step_says_who_has_seen_it(stock):
    stock.begin(run_id=None)
    stock.wrote(0)
    stock.wrote(1)
    stock.group(rule(VANISHING), cursor=1)
    seen = stock.index.step(RUN, 0, 1)
    stock.index.describe_step(
        RUN, seen, mode="TRAIN", mode_step=5, layout="x", evaluated_by="builtin"
    )
    first, second = stock.run().steps()
    assert (first.evaluated, second.evaluated) == (False, True)
    assert (second.mode, second.mode_step) == ("TRAIN", 5)


def test_steps_are_those_of_the_newest_attempt_between_two(stock):
    stock.begin(training_run=1)
    stock.wrote(0, training_run=0)
    for step in (0, 5, 10):
        stock.wrote(step, training_run=1)
    run = stock.run()
    assert [one.step for one in run.steps()] == [0, 5, 10]
    assert [one.step for one in run.steps(first=1, last=5)] == [5]
    assert {one.training_run for one in run.steps()} == {1}


# Waiting


def test_waiting_ends_when_the_run_has_finished_and_tells_what_is_new(stock):
    stock.begin()
    stock.group(rule(VANISHING), rule(LOSS), cursor=1)
    stock.events = [
        lambda: None,
        lambda: stock.group(ill(VANISHING, 2), rule(LOSS), cursor=2),
        lambda: stock.group(ill(VANISHING, 2, issue_since=None, last_good=3), rule(LOSS), cursor=2),
        lambda: stock.become(RunState.FINISHED),
    ]
    told = []
    seen = stock.run().wait(on_news=told.append)
    assert seen.state is RunState.FINISHED
    assert [(one.what, one.rule) for one in told] == [
        ("state", None),
        ("status", "fc"),
        ("status", "loss"),
        ("evaluated", None),
        ("status", "fc"),
        ("issue", "fc"),
        ("state", None),
    ]
    assert str(told[4]).startswith("fc is IssuesFound: RuleEvaluationConditionMet")
    assert str(told[5]) == "fc resolved at step 3"


def test_one_may_wait_for_a_finding_a_step_or_anything_else(stock):
    stock.begin()
    stock.group(rule(VANISHING), cursor=1)
    stock.events = [lambda: stock.group(ill(VANISHING, 2), cursor=2)]
    assert stock.run().wait(until="found").has_found_something
    stock.events = [lambda: stock.group(ill(VANISHING, 2), cursor=9)]
    assert stock.run().wait(until=8).evaluated_through == 9
    assert stock.run().wait(until=lambda run: run.state is RunState.RUNNING, timeout=0)


def test_who_waits_for_a_finding_of_a_run_without_any_waits_until_it_has_finished(stock):
    stock.begin()
    stock.events = [lambda: stock.become(RunState.FINISHED)]
    assert not stock.run().wait(until="found").has_found_something


def test_waiting_for_nothing_that_there_is_is_refused(stock):
    stock.begin()
    with pytest.raises(SMDebugValueError, match="'finished', 'found'"):
        stock.run().wait(until="done")


def test_waiting_too_long_is_said_with_how_the_run_stands(stock):
    stock.begin()
    with pytest.raises(WaitedTooLong, match="waited 20 s, and it is still so: Running"):
        stock.run().wait(timeout=20)
    assert sum(stock.paused) == pytest.approx(20)


def test_one_looks_less_often_while_nothing_is_new(stock):
    stock.begin()
    with pytest.raises(WaitedTooLong):
        stock.run().wait(timeout=300)
    assert stock.paused[0] == 1.0
    assert sorted(stock.paused[:-1]) == stock.paused[:-1]
    assert max(stock.paused) == 15.0


def test_what_cannot_be_reached_for_a_while_is_waited_for(stock):
    stock.begin(state=RunState.FINISHED)
    run = stock.run()
    query, failures = stock.store.query, iter([True, True])

    def shaky(*args, **options):
        if next(failures, False):
            raise StorageUnavailable("The table", "AWS asks to try again later")
        return query(*args, **options)

    stock.store.query = shaky
    assert run.wait(timeout=60).state is RunState.FINISHED
    assert len(stock.paused) == 2


# Rules that come and go


def names_in(storage: MemoryStorage) -> list[str]:
    return [one.name for one in parse_rules(storage.read("rules.json"), file="rules.json")]


def test_attaching_to_a_run_without_rules_of_its_own_keeps_those_of_the_stack(stock):
    stock.begin()
    written = stock.run().attach("ExplodingTensor")
    assert [one.name for one in written] == ["fc", "loss", "ExplodingTensor"]
    assert names_in(stock.open(RUN)) == ["fc", "loss", "ExplodingTensor"]
    assert written[:2] == (VANISHING, LOSS)


def test_attaching_keeps_what_the_file_says_in_whatever_form_it_does(stock):
    stock.begin()
    sagemaker = {
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": "vg",
                "RuleEvaluatorImage": "DEFAULT_RULE_EVALUATOR_IMAGE",
                "RuleParameters": {
                    "rule_to_invoke": "VanishingGradient",
                    "threshold": "1e-5",
                    "start-step": "5",
                    "action_json": '[{\\"name\\": \\"stoptraining\\"}]',
                },
            }
        ]
    }
    data = json.dumps(sagemaker).encode()
    stock.open(RUN).write("rules.json", data)
    (before,) = parse_rules(data, file="rules.json")
    after = stock.run().attach({"name": "mine", "rule": "AllZero", "parameters": {"threshold": 3}})
    assert after[0].id == before.id  # so the rule goes on as if nothing had happened
    assert after[1] == RuleConfiguration("mine", "AllZero", {"threshold": "3"})
    assert stock.run().rules() == after
    assert json.loads(stock.open(RUN).read("rules.json"))["version"] == 1


def test_a_rule_of_the_same_name_takes_the_place_of_the_other(stock):
    stock.begin()
    stricter = replace(VANISHING, parameters={"threshold": "1e-3"})
    written = stock.run().attach([stricter, LOSS])
    assert sorted(one.id for one in written) == sorted([stricter.id, LOSS.id])


def test_a_whole_file_of_rules_can_be_attached(stock):
    stock.begin()
    whole = {"version": 1, "rules": [{"name": "a", "rule": "AllZero"}, "ExplodingTensor"]}
    written = stock.run().attach(whole)
    assert [one.name for one in written] == ["fc", "loss", "a", "ExplodingTensor"]


def test_a_file_with_an_entry_that_cannot_be_read_is_not_written_over(stock):
    stock.begin()
    broken = b'{"rules": [{"rule": "AllZero"}, {"name": "x"}]}'
    stock.open(RUN).write("rules.json", broken)
    with pytest.raises(RulesFileError, match=r"s3://my-bucket/teams/resnet/rules\.json"):
        stock.run().attach("ExplodingTensor")
    assert stock.open(RUN).read("rules.json") == broken


@pytest.mark.parametrize(
    "nonsense", [{"rule": 5}, {"name": "a"}, [["x"]], {"rules": [{"rul": "A"}]}]
)
def test_rules_that_make_no_sense_are_refused_before_anything_is_written(stock, nonsense):
    stock.begin()
    with pytest.raises(RulesFileError):
        stock.run().attach(nonsense)
    assert not stock.open(RUN).exists("rules.json")


def test_a_detached_rule_is_gone_and_the_others_stay(stock):
    stock.begin(wanted=(VANISHING, LOSS, OWN))
    assert stock.run().detach("loss") == (VANISHING, OWN)
    assert names_in(stock.open(RUN)) == ["fc", "mine"]
    assert stock.run().detach(["mine", "fc"]) == ()
    assert names_in(stock.open(RUN)) == []


def test_what_is_not_attached_cannot_be_detached(stock):
    stock.begin()
    with pytest.raises(RuleUnknown, match=r"Did you mean loss\?"):
        stock.run().detach(["fc", "los"])
    assert not stock.open(RUN).exists("rules.json")


def test_the_rules_of_a_run_can_be_set_whole(stock):
    stock.begin()
    assert stock.run().set_rules([OWN]) == (OWN,)
    assert stock.run().rules() == (OWN,)


# Stopping


def test_a_training_is_asked_to_stop_by_its_control_object(stock):
    stock.begin()
    stock.run().stop("the loss is NaN – enough", stop_at_step=500)
    assert json.loads(stock.open(RUN).read("control/stop")) == {
        "reason": "the loss is NaN – enough",
        "finding_id": None,
        "stop_at_step": 500,
    }


@pytest.mark.parametrize("state", [RunState.ENDED, RunState.FINISHED])
def test_a_training_that_has_ended_cannot_be_stopped(stock, state):
    stock.begin(state=state)
    with pytest.raises(SMDebugRuntimeError, match="no training is left"):
        stock.run().stop()
    assert not stock.open(RUN).exists("control/stop")


def test_there_is_no_step_before_the_first_to_stop_at(stock):
    stock.begin()
    with pytest.raises(SMDebugValueError, match="stop_at_step"):
        stock.run().stop(stop_at_step=-1)


# Everything


def test_everything_is_plain_data_too(stock):
    stock.begin(wanted=(VANISHING, OWN))
    stock.group(ill(VANISHING, 2), cursor=2)
    stock.wrote(2)
    stock.found(VANISHING, 2)
    run = stock.run()
    told = [
        stock.debugger.runs().to_dict(),
        run.to_dict(),
        run.statuses().to_dict(),
        run.describe_rule_execution_jobs().to_dict(),
        run.debug_rule_evaluation_statuses().to_dict(),
        run.findings().to_dict(),
        run.steps().to_dict(),
    ]
    assert json.loads(json.dumps(told)) == told
    assert run.to_dict()["state"] == "Running"
    assert "record" not in run.to_dict()
    assert told[2][0]["status"] == "IssuesFound"


def test_a_run_reads_well(stock):
    stock.begin(troubles={"rules.json": "rules.json: it is not JSON"})
    stock.group(ill(VANISHING, 2), rule(LOSS), cursor=2)
    run = stock.run()
    assert repr(run) == f"<the run s3://{RUN}>"
    assert repr(stock.debugger) == "<the debugger of the runs in s3://my-bucket, stack tests>"
    lines = repr(run.look()).splitlines()
    assert lines[0] == (
        f"s3://{RUN}: Running, 1 worker, evaluated through step 2. rules.json: it is not JSON"
    )
    assert lines[1].split() == [
        *("name", "status", "reason", "issue_since", "last_found", "last_good"),
        *("evaluated_through", "changed_at"),
    ]
    assert lines[3] == "loss  InProgress" + " " * (lines[3].index("2") - 16) + "2"


def test_without_its_log_groups_the_logs_of_a_run_cannot_be_read(stock):
    stock.begin()
    with pytest.raises(StackUnknown, match="connect by the name of the stack"):
        stock.run().logs("fc")


def test_what_has_gone_in_between_is_said_to_be_unknown(stock):
    stock.begin()
    run = stock.run()
    stock.store.delete(f"RUN#{RUN}", "RUN")
    with pytest.raises(RunUnknown):
        run.statuses()


def test_the_tensors_of_a_run_are_at_hand():
    stock = ill_run()
    trial = stock.debugger.run("resnet").trial()
    assert trial.steps() == [0, 10, 20]
    assert trial.tensor("gradient/fc").value(10) == pytest.approx([1e-9])


def test_a_group_that_the_run_does_not_name_is_not_shown(stock):
    stock.begin(wanted=(VANISHING,))
    stock.group(rule(VANISHING), cursor=2)
    orphan = GroupRecord(f"lane-{VANISHING.id}", rules=(rule(VANISHING),))
    stock.store.put(items.item_of_group(RUN, orphan))
    assert [one.group for one in stock.run().look().groups] == ["builtin"]
