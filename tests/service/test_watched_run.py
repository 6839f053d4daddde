"""A run as a whole: stopping it, its representations, its tensors."""

from __future__ import annotations

import json

import pytest

from smdebug.exceptions import (
    RunUnknown,
    SMDebugRuntimeError,
    SMDebugValueError,
    StackUnknown,
)
from smdebug.service.records import GroupRecord, RunState
from smdebug.service.step_index import items
from tests.service.stocked import LOSS, OWN, RUN, VANISHING, failing, failing_run, rule


def test_a_stop_request_is_written_to_the_control_object(stock):
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


def test_stopping_at_a_negative_step_is_refused(stock):
    stock.begin()
    with pytest.raises(SMDebugValueError, match="stop_at_step"):
        stock.run().stop(stop_at_step=-1)


def test_every_answer_can_be_converted_to_json(stock):
    stock.begin(wanted=(VANISHING, OWN))
    stock.group(failing(VANISHING, 2), cursor=2)
    stock.wrote(2)
    stock.found(VANISHING, 2)
    run = stock.run()
    answers = [
        stock.debugger.runs().to_dict(),
        run.to_dict(),
        run.statuses().to_dict(),
        run.describe_rule_execution_jobs().to_dict(),
        run.debug_rule_evaluation_statuses().to_dict(),
        run.findings().to_dict(),
        run.steps().to_dict(),
    ]
    assert json.loads(json.dumps(answers)) == answers
    assert run.to_dict()["state"] == "Running"
    assert "record" not in run.to_dict()
    assert answers[2][0]["status"] == "IssuesFound"


def test_the_representations_of_a_run_are_readable(stock):
    stock.begin(troubles={"rules.json": "rules.json: it is not JSON"})
    stock.group(failing(VANISHING, 2), rule(LOSS), cursor=2)
    run = stock.run()
    assert repr(run) == f"<the run s3://{RUN}>"
    assert repr(stock.debugger) == "<the debugger of the runs in s3://my-bucket, stack tests>"
    lines = repr(run.look()).splitlines()
    assert lines[0] == (
        f"s3://{RUN}: Running, 1 worker, evaluated through step 2. rules.json: it is not JSON"
    )
    assert lines[1].split() == [
        "name",
        "status",
        "reason",
        "issue_since",
        "last_found",
        "last_good",
        "evaluated_through",
        "changed_at",
    ]
    assert lines[3] == "loss  InProgress" + " " * (lines[3].index("2") - 16) + "2"


def test_reading_logs_without_known_log_groups_is_refused(stock):
    stock.begin()
    with pytest.raises(StackUnknown, match="connect by the name of the stack"):
        stock.run().logs("fc")


def test_a_run_removed_in_the_meantime_is_unknown(stock):
    stock.begin()
    run = stock.run()
    stock.store.delete(f"RUN#{RUN}", "RUN")
    with pytest.raises(RunUnknown):
        run.statuses()


def test_the_tensors_of_a_run_can_be_read():
    stock = failing_run()
    trial = stock.debugger.run("resnet").trial()
    assert trial.steps() == [0, 10, 20]
    assert trial.tensor("gradient/fc").value(10) == pytest.approx([1e-9])


def test_a_group_that_the_run_does_not_name_is_not_shown(stock):
    stock.begin(wanted=(VANISHING,))
    stock.group(rule(VANISHING), cursor=2)
    orphan = GroupRecord(f"lane-{VANISHING.id}", rules=(rule(VANISHING),))
    stock.store.put(items.item_of_group(RUN, orphan))
    assert [group.group for group in stock.run().look().groups] == ["builtin"]
