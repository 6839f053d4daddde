"""A bus and a topic of others are used as they are, and a central account gets events and alarms."""

from __future__ import annotations

import json

from infra.events.central_bus import central_statement
from tests.infra.conftest import Stack, listed

CENTRAL = "arn:aws:events:eu-west-1:210987654321:event-bus/all-runs"
TOPIC = "arn:aws:sns:us-east-1:123456789012:on-call"


def of_policies(stack: Stack, action: str) -> dict[str, set[str]]:
    """What each role may do that on."""
    return {
        role: found
        for role in stack.of("AWS::IAM::Role")
        if (
            found := {
                stack.text(resource)
                for statement in stack.statements_of(role)
                if action in listed(statement["Action"])
                for resource in listed(statement["Resource"])
            }
        )
    }


def test_nothing_of_an_existing_bus_or_topic_is_created_or_changed(joined_stack: Stack):
    for kind in ("EventBus", "EventBusPolicy"):
        assert joined_stack.of(f"AWS::Events::{kind}") == {}
    # That of the alarms is still the stack's own: CloudWatch needs a statement in its policy.
    (policy,) = joined_stack.of("AWS::SNS::TopicPolicy").values()
    assert TOPIC not in json.dumps(policy)
    (topic,) = joined_stack.of("AWS::SNS::Topic")
    assert topic.startswith("DebuggerAlarmsTopic")


def test_rules_and_the_workflow_use_the_existing_bus(joined_stack: Stack):
    buses = {
        rule.get("EventBusName")
        for rule in joined_stack.of("AWS::Events::Rule").values()
        if rule.get("EventPattern", {}).get("source") == ["smdebug"]
    }
    assert buses == {"shared"}
    bus = "arn:<AWS::Partition>:events:<AWS::Region>:<AWS::AccountId>:event-bus/shared"
    putting = of_policies(joined_stack, "events:PutEvents")
    assert sorted(map(tuple, putting.values())) == sorted([(CENTRAL,), (bus,)])
    assert "shared" in json.dumps(joined_stack.of("AWS::StepFunctions::StateMachine"))
    assert joined_stack.template["Outputs"]["FindingsBus"]["Value"] == "shared"


def test_the_statement_for_an_existing_bus_denies_forged_findings_and_no_other_events(joined_stack: Stack):
    value = joined_stack.template["Outputs"]["EventBusStatement"]["Value"]
    statement = json.loads(joined_stack.text(value))
    assert (statement["Effect"], statement["Action"]) == ("Deny", "events:PutEvents")
    assert statement["Condition"]["ForAnyValue:StringEquals"] == {"events:source": "smdebug"}
    role = statement["Condition"]["ArnNotEquals"]["aws:PrincipalArn"].strip("<>")
    assert of_policies(joined_stack, "events:PutEvents")[role]


def test_alerts_go_to_the_existing_topic_and_people_subscribe_there(joined_stack: Stack):
    publishing = of_policies(joined_stack, "sns:Publish")
    assert set(map(tuple, publishing.values())) == {(TOPIC,)}
    assert len(publishing) == 2  # Act and Notify
    topics = [entry["TopicArn"] for entry in joined_stack.of("AWS::SNS::Subscription").values()]
    assert TOPIC in topics


def test_the_central_bus_gets_every_event_and_the_alarms_of_this_stack_alone(joined_stack: Stack):
    rules = [
        rule for rule in joined_stack.of("AWS::Events::Rule").values() if rule["Targets"][0]["Arn"] == CENTRAL
    ]
    patterns = {rule.get("EventBusName", "default"): rule["EventPattern"] for rule in rules}
    assert patterns["shared"] == {"source": ["smdebug"]}
    assert patterns["default"]["source"] == ["aws.cloudwatch"]
    assert patterns["default"]["detail"] == {"alarmName": [{"prefix": "smdebug-"}]}
    (role,) = {rule["Targets"][0]["RoleArn"]["Fn::GetAtt"][0] for rule in rules}
    assert of_policies(joined_stack, "events:PutEvents")[role] == {CENTRAL}
    assert all("DeadLetterConfig" in rule["Targets"][0] for rule in rules)


def test_the_statement_for_the_central_account_lets_in_this_account_alone(joined_stack: Stack):
    value = joined_stack.template["Outputs"]["CentralBusStatement"]["Value"]
    statement = json.loads(joined_stack.text(value))
    assert statement == central_statement(CENTRAL, "<AWS::AccountId>", "<AWS::Partition>")
    assert statement["Principal"] == {"AWS": "arn:<AWS::Partition>:iam::<AWS::AccountId>:root"}


def test_a_stack_of_its_own_sends_nothing_elsewhere(default_stack: Stack):
    assert len(default_stack.of("AWS::Events::EventBus")) == 1
    assert not {"EventBusStatement", "CentralBusStatement"} & set(default_stack.template["Outputs"])
    assert not [name for name in default_stack.resources if name.startswith("DebuggerCentral")]
