"""The queues from which programs of the user's own read what is to be stopped, or sent to a tool."""

import pytest

from tests.infra.conftest import Stack

FINDINGS = ("Rule Evaluation Condition Met", {"has_actions": [True]})
FINISHED = ("Run State Change", {"state": ["Finished"]})


def queues(stack: Stack, kind: str):
    prefix = f"Debugger{kind}"
    return {name: it for name, it in stack.of("AWS::SQS::Queue").items() if name.startswith(prefix)}


@pytest.mark.parametrize(
    ("kind", "count", "kept", "again", "tries"),
    [("Stops", 2, 3600, 60, 5), ("Exports", 1, 14 * 24 * 3600, 3600, 24)],
)
def test_each_reader_has_a_queue_that_tries_again_and_keeps_failures(
    full_stack: Stack, kind, count, kept, again, tries
):
    (undelivered,) = (
        name for name in full_stack.of("AWS::SQS::Queue") if name.startswith("DebuggerUndelivered")
    )
    assert len(queues(full_stack, kind)) == count
    for queue in queues(full_stack, kind).values():
        assert queue["MessageRetentionPeriod"] == kept
        assert queue["VisibilityTimeout"] == again
        assert queue["RedrivePolicy"] == {
            "deadLetterTargetArn": {"Fn::GetAtt": [undelivered, "Arn"]},
            "maxReceiveCount": tries,
        }
        assert "KmsMasterKeyId" in queue


@pytest.mark.parametrize(
    ("kind", "events", "output", "name"),
    [("Stops", FINDINGS, "StopQueues", "hpc="), ("Exports", FINISHED, "ExportQueues", "mlflow=")],
)
def test_only_its_rule_sends_to_a_queue_and_only_what_it_is_for(
    full_stack: Stack, kind, events, output, name
):
    for queue in queues(full_stack, kind):
        (rule,) = (
            (key, rule)
            for key, rule in full_stack.of("AWS::Events::Rule").items()
            if rule["Targets"][0]["Arn"] == {"Fn::GetAtt": [queue, "Arn"]}
        )
        pattern = rule[1]["EventPattern"]
        assert (pattern["detail-type"], pattern["detail"]) == ([events[0]], events[1])
        (allowed,) = (
            statement
            for policy in full_stack.of("AWS::SQS::QueuePolicy").values()
            if {"Ref": queue} in policy["Queues"]
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Allow"
        )
        assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": [{"Fn::GetAtt": [rule[0], "Arn"]}]}}
    (shown,) = (value for key, value in full_stack.template["Outputs"].items() if key.endswith(output))
    assert name in str(shown["Value"])


def test_without_readers_there_is_no_queue(default_stack: Stack):
    for kind, output in (("Stops", "StopQueues"), ("Exports", "ExportQueues")):
        assert queues(default_stack, kind) == {}
        assert output not in default_stack.template["Outputs"]
