"""With a key of one's own everything that takes one has it, and everybody who needs it may use it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

import pytest

from infra.landing_zone import key_policy
from infra.landing_zone.key_policy import Place, statements
from infra.settings import Settings
from tests.infra.conftest import Stack, listed

MINE = "arn:aws:kms:us-east-1:123456789012:key/mine"
WITHOUT = {
    "AWS::Lambda::EventSourceMapping": "its key encrypts the criteria of a filter, and it has none",
    "AWS::KMS::Key": "is the key",
}


def key_of(stack: Stack) -> str:
    """How the properties of a resource name the key."""
    if not (new := list(stack.of("AWS::KMS::Key"))):
        return json.dumps(MINE)
    return json.dumps({"Fn::GetAtt": [new[0], "Arn"]})


def takes_a_key(kind: str) -> bool:
    """Whether a resource of this type has a property for a key, in CloudFormation's own words."""
    _, service, name = kind.split("::")
    resource = getattr(import_module(f"aws_cdk.aws_{service.lower()}"), f"Cfn{name}")
    nested = [value for value in vars(resource).values() if inspect.isclass(value)]
    names = [name for form in (resource, *nested) for name in inspect.signature(form.__init__).parameters]
    return any(re.search("kms", name) for name in names)


@pytest.fixture(params=["full_stack", "zone_stack"])
def keyed(request: pytest.FixtureRequest) -> Stack:
    """A stack with an existing key, and one with a new key."""
    return request.getfixturevalue(request.param)


def test_the_types_that_take_a_key_are_known(keyed: Stack):
    kinds = {resource["Type"] for resource in keyed.resources.values()}
    assert {kind for kind in kinds if takes_a_key(kind)} - set(WITHOUT) - {"AWS::S3::Bucket"} == {
        "AWS::DynamoDB::Table",
        "AWS::Events::EventBus",
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "AWS::SNS::Topic",
        "AWS::SQS::Queue",
        "AWS::StepFunctions::StateMachine",
    }


def test_everything_that_takes_a_key_has_it(keyed: Stack):
    key = key_of(keyed)
    takers = {
        name: resource
        for name, resource in keyed.resources.items()
        if resource["Type"] not in WITHOUT and takes_a_key(resource["Type"])
    }
    assert len(takers) >= 35
    assert [name for name, it in takers.items() if key not in json.dumps(it["Properties"])] == []
    queues = keyed.of("AWS::SQS::Queue").values()
    assert len(queues) >= 3
    assert {queue.get("SqsManagedSseEnabled") for queue in queues} == {None}  # SQS refuses both


def test_without_a_key_there_is_none_and_no_permission_for_one(default_stack: Stack):
    assert not default_stack.of("AWS::KMS::Key")
    assert "kms:" not in json.dumps(default_stack.resources)


WRITES = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
SENDS = {"sqs:SendMessage", "sns:Publish"}
USES = {
    "kms:Decrypt": {"dynamodb:GetItem", "dynamodb:Query", "s3:GetObject", "sqs:ReceiveMessage"}
    | SENDS
    | WRITES,
    "kms:GenerateDataKey": {"s3:PutObject"} | SENDS | WRITES,
    "kms:Encrypt": WRITES,
}
"""The actions on encrypted things for which the services ask KMS in the name of the caller."""


def test_every_role_may_use_the_key_for_what_it_does_and_no_other_may(keyed: Stack):
    key = key_of(keyed)
    uses = {"with": 0, "without": 0}
    for role in keyed.of("AWS::IAM::Role"):
        may = keyed.statements_of(role)
        actions = {action for statement in may for action in listed(statement["Action"])}
        of_kms = [statement for statement in may if "kms:" in json.dumps(statement["Action"])]
        assert all(json.dumps(statement["Resource"]) == key for statement in of_kms)
        for use, needing in USES.items():
            if actions & needing:
                assert use in actions, (role, use)
        touches = any(
            action.partition(":")[0] in ("s3", "dynamodb", "sqs", "sns", "states") for action in actions
        )
        logs = "logs:CreateLogDelivery" in actions
        assert bool(of_kms) <= (touches or logs), f"{role} needs no key"
        uses["with" if of_kms else "without"] += 1
    assert uses["with"] >= 12
    assert uses["without"] >= 2  # those with custom rules, that of schedules


def test_functions_with_custom_rules_may_not_use_the_key_themselves(keyed: Stack):
    untrusted = [
        function["Role"]["Fn::GetAtt"][0]
        for function in keyed.of("AWS::Lambda::Function").values()
        if function["Handler"] == "functions.handlers.run_custom_rule.handler"
    ]
    assert untrusted
    assert "kms:" not in json.dumps([keyed.statements_of(role) for role in untrusted])


# The policy of the key


def services(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {statement["Principal"]["Service"]: statement for statement in found}


def test_a_new_key_lets_in_the_services_that_have_to_use_it(zone_stack: Stack):
    key = zone_stack.single("AWS::KMS::Key")
    assert key["EnableKeyRotation"] is True
    (root, *others) = key["KeyPolicy"]["Statement"]
    assert zone_stack.text(root["Principal"]["AWS"]).endswith(":iam::<AWS::AccountId>:root")
    let_in = {
        zone_stack.text(statement["Principal"]["Service"]): set(listed(statement["Action"]))
        for statement in others
    }
    both = {"kms:Decrypt", "kms:GenerateDataKey"}
    assert set(let_in) == {
        "logs.<AWS::Region>.<AWS::URLSuffix>",
        "delivery.logs.amazonaws.com",
        "events.amazonaws.com",
        "cloudwatch.amazonaws.com",
        "s3.amazonaws.com",
    }
    assert let_in["s3.amazonaws.com"] == let_in["cloudwatch.amazonaws.com"] == both
    assert let_in["events.amazonaws.com"] == both | {"kms:DescribeKey"}


def test_a_key_is_kept_with_what_it_encrypts(zone_stack: Stack):
    (key,) = [it for it in zone_stack.resources.values() if it["Type"] == "AWS::KMS::Key"]
    (table,) = [it for it in zone_stack.resources.values() if it["Type"] == "AWS::DynamoDB::Table"]
    assert key["DeletionPolicy"] == table["DeletionPolicy"] == "RetainExceptOnCreate"


def test_the_logs_of_the_stack_and_no_others_match_the_policy(zone_stack: Stack):
    place = Place.of("123456789012", "us-east-1")
    policy = services(statements(place, stack="acme-ml-smdebug", prefix="acme-ml-", own_bucket=True))
    condition = policy["logs.us-east-1.amazonaws.com"]["Condition"]["ArnLike"]
    (patterns,) = condition.values()

    def is_let_in(group: str) -> bool:
        arn = f"arn:aws:logs:us-east-1:123456789012:log-group:{group}"
        return any(fnmatchcase(arn, pattern) for pattern in patterns)

    named = [
        log["LogGroupName"] for log in zone_stack.of("AWS::Logs::LogGroup").values() if "LogGroupName" in log
    ]
    assert len(named) == 2
    assert [group for group in named if not is_let_in(group)] == []
    assert is_let_in("acme-ml-smdebug-DebuggerIngestLog1234-AbCd")  # as CloudFormation names the others
    assert not is_let_in("/aws/lambda/theirs")


@pytest.mark.parametrize(
    ("region", "partition", "logs"),
    [
        ("eu-central-1", "aws", "logs.eu-central-1.amazonaws.com"),
        ("cn-north-1", "aws-cn", "logs.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "aws-us-gov", "logs.us-gov-west-1.amazonaws.com"),
    ],
)
def test_the_policy_for_an_existing_key_is_printed_for_every_partition(
    region: str, partition: str, logs: str, capsys: pytest.CaptureFixture[str]
):
    key_policy.main(["123456789012", region, "-c", "bucket=mine"])
    printed = services(json.loads(capsys.readouterr().out))
    assert logs in printed
    assert f"arn:{partition}:logs:{region}:123456789012:log-group:smdebug-*" in json.dumps(printed)
    assert "s3.amazonaws.com" not in printed  # another's bucket sends events, and no notifications


def test_a_wrong_account_and_a_wrong_setting_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        key_policy.main(["12345", "us-east-1"])
    assert "it has 12 digits" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="did you mean 'bucket'"):
        key_policy.main(["123456789012", "us-east-1", "-c", "buket=x"])


def test_an_alarm_topic_with_a_key_is_encrypted(keyed: Stack, synthesize: Callable[..., Stack]):
    topic = keyed.single("AWS::SNS::Topic", "DebuggerAlarmsTopic")
    assert json.dumps(topic["KmsMasterKeyId"]) == key_of(keyed)
    assert Settings(encryption_key_arn="new").encryption_key_arn == "new"
