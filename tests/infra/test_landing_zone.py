"""What a landing zone asks for holds for every resource, also for one that is added later."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest

from infra.app import NAME
from infra.outputs import CONSOLES
from infra.settings import Settings, SettingsError
from infra.training_debugger import TrainingDebugger
from local_aws.template import Resolver
from tests.infra.conftest import PREFIX, UNBUNDLED, Stack, listed
from tests.infra.test_stack import CHOSEN_NAMES, INSIDE_ANOTHER
from tests.support.looking import each


def test_every_role_has_the_boundary_and_the_path(zone_stack: Stack, full_stack: Stack):
    for role in each(zone_stack.of("AWS::IAM::Role").values(), at_least=20):
        assert role["PermissionsBoundary"] == "arn:aws:iam::123456789012:policy/limits/Bounded"
        assert role["Path"] == "/workloads/"
    for role in each(
        full_stack.of("AWS::IAM::Role").values(), at_least=15
    ):  # a policy of this account, by name
        arn = full_stack.text(role["PermissionsBoundary"])
        assert arn == "arn:<AWS::Partition>:iam::<AWS::AccountId>:policy/Bounded"
        assert role["Path"] == "/workloads/ml/"


def test_without_settings_roles_have_neither(default_stack: Stack):
    for role in each(default_stack.of("AWS::IAM::Role").values(), at_least=10):
        assert not {"PermissionsBoundary", "Path", "Tags"} & set(role)


def test_every_name_has_the_prefix(zone_stack: Stack):
    chosen = [
        zone_stack.text(value).removeprefix("/aws/vendedlogs/states/")
        for resource in zone_stack.resources.values()
        for key, value in resource.get("Properties", {}).items()
        if key in CHOSEN_NAMES and resource["Type"] not in INSIDE_ANOTHER
    ]
    assert len(chosen) >= 10
    assert [name for name in chosen if not name.startswith(PREFIX)] == []
    # CloudFormation makes the names of these from the logical id, without the stack's.
    for kind, key in (
        ("AWS::StepFunctions::StateMachine", "StateMachineName"),
        ("AWS::CloudWatch::Dashboard", "DashboardName"),
        ("AWS::Lambda::LayerVersion", "LayerName"),
    ):
        assert [key in properties for properties in zone_stack.of(kind).values()].count(False) == 0


def test_a_stack_whose_generated_names_would_lack_the_prefix_is_refused(tmp_path):
    app = cdk.App(context=UNBUNDLED, outdir=str(tmp_path))
    stack = cdk.Stack(app, "theirs")
    with pytest.raises(SettingsError, match="set stack=acme-theirs"):
        TrainingDebugger(stack, "Debugger", settings=Settings(name_prefix="acme-"))


def test_names_of_a_bucket_fit_with_the_longest_prefix_and_region():
    assert len(f"{'x' * 19}smdebug-12345678-123456789012-ap-southeast-1") <= 63


TAGS = {"team": "ml", "cost-centre": "42"}
UNTAGGED = {
    "AWS::CloudWatch::Dashboard": "cannot have tags in CloudFormation",
    "AWS::Events::EventBusPolicy": "is a policy",
    "AWS::IAM::Policy": "is a policy inside of a role",
    "AWS::Lambda::LayerVersion": "cannot have tags in CloudFormation",
    "AWS::Lambda::Permission": "is a policy",
    "AWS::S3::BucketPolicy": "is a policy",
    "AWS::SNS::Subscription": "cannot have tags in CloudFormation",
    "AWS::SNS::TopicPolicy": "is a policy",
    "AWS::SQS::QueuePolicy": "is a policy",
}


@pytest.mark.parametrize("which", ["zone_stack", "full_stack"])
def test_every_resource_that_can_have_tags_has_them(which: str, request: pytest.FixtureRequest):
    stack = request.getfixturevalue(which)
    tagged = {}
    for resource in stack.resources.values():
        if resource["Type"] not in UNTAGGED:
            tags = resource["Properties"].get("Tags", {})
            pairs = tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}
            tagged.setdefault(resource["Type"], []).append(pairs)
    assert len(tagged) >= 11
    assert {kind: tags for kind, tags in tagged.items() if any(each != TAGS for each in tags)} == {}


def test_every_log_expires_after_the_setting(zone_stack: Stack):
    logs = zone_stack.of("AWS::Logs::LogGroup").values()
    assert len(logs) >= 18
    assert {log["RetentionInDays"] for log in logs} == {7}


def test_every_function_is_in_its_subnets_and_untrusted_ones_in_theirs(zone_stack: Stack):
    trusted = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    kinds = []
    for function in zone_stack.of("AWS::Lambda::Function").values():
        untrusted = function["Handler"] == "functions.handlers.run_custom_rule.handler"
        assert function["VpcConfig"] == {
            "SubnetIds": ["subnet-0aaaaaaaaaaaaaaaa"] if untrusted else trusted,
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
        }
        kinds.append(untrusted)
    assert kinds.count(True) >= 2
    assert kinds.count(False) >= 12


def test_lambda_may_attach_a_function_and_the_code_in_it_may_not(zone_stack: Stack):
    for function in each(zone_stack.of("AWS::Lambda::Function").values(), at_least=14):
        of_network = [
            statement
            for statement in zone_stack.statements_of(function["Role"]["Fn::GetAtt"][0])
            if "ec2:CreateNetworkInterface" in listed(statement["Action"])
        ]
        allowed, denied = sorted(of_network, key=lambda statement: str(statement["Effect"]))
        assert (allowed["Effect"], denied["Effect"]) == ("Allow", "Deny")
        assert set(denied["Action"]) <= set(allowed["Action"])
        assert len(denied["Action"]) == 6
        assert "Condition" not in allowed
        assert denied["Condition"] == {"Null": {"lambda:SourceFunctionArn": "false"}}


def test_without_subnets_functions_are_in_no_vpc(default_stack: Stack):
    assert "VpcConfig" not in json.dumps(default_stack.resources)
    assert "ec2:" not in json.dumps(default_stack.resources)


@pytest.mark.parametrize("which", ["zone_stack", "full_stack"])
def test_no_arn_names_a_partition(which: str, request: pytest.FixtureRequest):
    """China and GovCloud have others; the given ARNs of the settings are the user's own."""
    stack = request.getfixturevalue(which)
    text = json.dumps(stack.resources)
    for given in (
        "arn:aws:iam::123456789012:policy/limits/Bounded",
        "arn:aws:kms:us-east-1:123456789012:key/mine",
    ):
        text = text.replace(given, "")
    assert "arn:aws" not in text
    machines = stack.of("AWS::StepFunctions::StateMachine").values()
    assert all(
        "arn:${Partition}:states:::" in json.dumps(machine["DefinitionString"]) for machine in machines
    )
    assert all(m["DefinitionSubstitutions"]["Partition"] == {"Ref": "AWS::Partition"} for m in machines)


@pytest.mark.parametrize(
    ("partition", "region", "address"),
    [
        ("aws", "us-east-1", "https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#d"),
        (
            "aws-cn",
            "cn-north-1",
            "https://cn-north-1.console.amazonaws.cn/cloudwatch/home?region=cn-north-1#d",
        ),
        (
            "aws-us-gov",
            "us-gov-west-1",
            "https://us-gov-west-1.console.amazonaws-us-gov.com/cloudwatch/home?region=us-gov-west-1#d",
        ),
    ],
)
def test_the_dashboard_has_an_address_in_every_partition(
    partition: str, region: str, address: str, default_stack: Stack
):
    assert partition in CONSOLES
    resolve = Resolver(default_stack.template, NAME, created=lambda _: ("dashboard", {}))
    resolve._pseudo.update({"AWS::Partition": partition, "AWS::Region": region})
    assert resolve(default_stack.template["Outputs"]["Dashboard"]["Value"]).startswith(address)


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ({"permissions_boundary": "arn:aws:iam::1:role/x"}, "is not a managed policy"),
        ({"permissions_boundary": "my policy"}, "write its name in this account"),
        ({"role_path": "workloads"}, "with a slash at the beginning and at the end"),
        ({"role_path": "/a//b/"}, "is not a path of IAM"),
        ({"role_path": "/work loads/"}, "is not a path of IAM"),
        ({"name_prefix": "Acme-"}, "up to 19 lower-case letters"),
        ({"name_prefix": "a" * 20}, "up to 19"),
        ({"name_prefix": "-acme"}, "beginning with a letter"),
        ({"tags": ("team",)}, "write key=value"),
        ({"tags": ("=ml",)}, "write key=value"),
        ({"tags": ("aws:x=ml",)}, "which AWS keeps for itself"),
        ({"tags": ("team=ml", "team=x")}, "'team' is set twice"),
        ({"tags": ("team=m*l",)}, "one that AWS refuses"),
        ({"tags": ("team=" + "x" * 257,)}, "longer than 256"),
        ({"vpc_subnets": ("subnet-1",), "vpc_security_groups": ("sg-12345678",)}, "'subnet-1' is not an id"),
        ({"vpc_subnets": ("subnet-12345678",)}, "need vpc_security_groups"),
        ({"custom_rule_subnets": ("subnet-12345678",)}, "need vpc_security_groups"),
        ({"vpc_security_groups": ("sg-12345678",)}, "has no effect without vpc_subnets"),
        ({"vpc_security_groups": tuple(f"sg-1234567{n}" for n in range(6))}, "at most 5"),
        ({"tags": tuple(f"k{n}=v" for n in range(41))}, "names 41 tags"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_write(invalid, message):
    with pytest.raises(SettingsError, match=message):
        Settings(**invalid)


@pytest.mark.parametrize(
    "valid",
    [
        {"permissions_boundary": "arn:aws-us-gov:iam::123456789012:policy/a/b"},
        {"permissions_boundary": "arn:aws:iam::aws:policy/PowerUserAccess"},
        {"role_path": "/"},
        {"role_path": "/a/b/"},
        {"name_prefix": "a" * 19},
        {"tags": ("team=a=b", "data/class=internal use", "empty=")},
    ],
)
def test_a_right_setting_is_accepted(valid):
    Settings(**valid)
