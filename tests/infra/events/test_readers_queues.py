"""The queues from which clusters of the user's own read what is to be stopped."""

from tests.infra.conftest import Stack


def queues(stack: Stack):
    return {name: it for name, it in stack.of("AWS::SQS::Queue").items() if name.startswith("DebuggerStops")}


def test_each_cluster_has_a_queue_that_forgets_after_an_hour_and_keeps_failures(full_stack: Stack):
    (undelivered,) = (
        name for name in full_stack.of("AWS::SQS::Queue") if name.startswith("DebuggerUndelivered")
    )
    assert len(queues(full_stack)) == 2
    for queue in queues(full_stack).values():
        assert queue["MessageRetentionPeriod"] == 3600
        assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": [undelivered, "Arn"]}
        assert "KmsMasterKeyId" in queue


def test_only_its_rule_sends_to_a_queue_and_only_findings_with_actions(full_stack: Stack):
    for name in queues(full_stack):
        (rule,) = (
            (key, rule)
            for key, rule in full_stack.of("AWS::Events::Rule").items()
            if rule["Targets"][0]["Arn"] == {"Fn::GetAtt": [name, "Arn"]}
        )
        assert rule[1]["EventPattern"]["detail-type"] == ["Rule Evaluation Condition Met"]
        assert rule[1]["EventPattern"]["detail"] == {"has_actions": [True]}
        (allowed,) = (
            statement
            for policy in full_stack.of("AWS::SQS::QueuePolicy").values()
            if {"Ref": name} in policy["Queues"]
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Allow"
        )
        assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": [{"Fn::GetAtt": [rule[0], "Arn"]}]}}
    (output,) = (value for key, value in full_stack.template["Outputs"].items() if key.endswith("StopQueues"))
    assert "hpc=" in str(output["Value"])


def test_without_clusters_there_is_no_queue(default_stack: Stack):
    assert queues(default_stack) == {}
    assert "StopQueues" not in default_stack.template["Outputs"]
