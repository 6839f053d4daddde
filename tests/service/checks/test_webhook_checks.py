"""What `smdebug doctor --deployed` reports about a webhook's secret, without showing any of it."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from smdebug.service.checks.live_checks import LiveCheck, check_deployment
from tests.service.checks.test_live_checks import REGION, template
from tests.support.mocked_aws import mocked_aws

GOOD = json.dumps({"url": "https://hooks.example.org/verysecret", "token": "verysecret"})
PATTERN = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:pager-??????"
PARAMETER = f"arn:aws:ssm:{REGION}:123456789012:parameter/pager"


def stack_of(secret: str, action: str, arn: str) -> dict[str, Any]:
    """A stack whose webhook reads this secret, with a role that may do this."""
    made = template()
    trust = {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}]}
    statement = {"Effect": "Allow", "Action": [action], "Resource": arn}
    allowed = {"Version": "2012-10-17", "Statement": [statement]}
    made["Resources"] |= {
        "Role1": {
            "Type": "AWS::IAM::Role",
            "Properties": {"AssumeRolePolicyDocument": trust},
        },
        "Policy1": {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "PolicyName": "p",
                "PolicyDocument": allowed,
                "Roles": [{"Ref": "Role1"}],
            },
        },
        "DebuggerPostToWebhookFunction1": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "h.h",
                "Role": {"Fn::GetAtt": ["Role1", "Arn"]},
                "Code": {"ZipFile": "x = 1"},
                "Environment": {"Variables": {"SMDEBUG_WEBHOOK_SECRET": secret}},
            },
        },
    }
    return made


@pytest.fixture
def aws():
    with mocked_aws(REGION):
        yield lambda service: boto3.client(service, region_name=REGION)


def checked(
    aws: Any,
    secret: str = "pager",
    action: str = "secretsmanager:GetSecretValue",
    arn: str = PATTERN,
    clients: Any = None,
) -> list[LiveCheck]:
    made = json.dumps(stack_of(secret, action, arn))
    aws("cloudformation").create_stack(StackName="smdebug", TemplateBody=made)
    found = check_deployment("smdebug", clients or aws)
    assert "verysecret" not in repr(found)
    return [check for check in found if check.what == "webhooks"]


def states(checks: list[LiveCheck]) -> list[tuple[str, str]]:
    return [(check.state, check.found) for check in checks]


def test_a_stack_without_webhooks_lacks_nothing(aws):
    aws("cloudformation").create_stack(StackName="smdebug", TemplateBody=json.dumps(template()))
    (found,) = [c for c in check_deployment("smdebug", aws) if c.what == "webhooks"]
    assert found.state == "absent"


def test_a_secret_that_the_function_reads_passes(aws):
    aws("secretsmanager").create_secret(Name="pager", SecretString=GOOD)
    assert states(checked(aws)) == [("well", "the secret pager has an endpoint")]


def test_an_encrypted_parameter_that_the_function_reads_passes(aws):
    aws("ssm").put_parameter(Name="/pager", Type="SecureString", Value=GOOD)
    found = checked(aws, "ssm:/pager", "ssm:GetParameter", PARAMETER)
    assert states(found) == [("well", "the secret ssm:/pager has an endpoint")]


def test_a_plain_parameter_is_wrong(aws):
    aws("ssm").put_parameter(Name="/pager", Type="String", Value=GOOD)
    (found,) = checked(aws, "ssm:/pager", "ssm:GetParameter", PARAMETER)
    assert (found.state, "not encrypted" in found.found) == ("wrong", True)


@pytest.mark.parametrize("secret", ["pager", "ssm:/pager"])
def test_a_secret_that_does_not_exist_is_wrong(aws, secret):
    ((state, found),) = states(checked(aws, secret))
    assert state == "wrong"
    assert found == f"the secret {secret} does not exist in this account and region"


def test_a_deleted_secret_is_wrong(aws):
    aws("secretsmanager").create_secret(Name="pager", SecretString=GOOD)
    aws("secretsmanager").delete_secret(SecretId="pager")
    ((state, found),) = states(checked(aws))
    assert (state, "is being deleted" in found) == ("wrong", True)


@pytest.mark.parametrize(
    "text", ["verysecret", '{"url": "http://verysecret/x"}', '{"url": "https://x/very secret"}']
)
def test_a_secret_of_another_form_is_wrong_and_not_shown(aws, text):
    aws("secretsmanager").create_secret(Name="pager", SecretString=text)
    (found,) = checked(aws)
    assert (found.state, "the secret pager" in found.found.lower()) == ("wrong", True)
    assert "very secret" not in repr(found)
    assert found.hint


def test_a_binary_secret_is_wrong(aws):
    aws("secretsmanager").create_secret(Name="pager", SecretBinary=b"verysecret")
    assert states(checked(aws)) == [("wrong", "the secret pager is binary")]


@pytest.mark.parametrize(
    ("action", "arn"),
    [
        ("secretsmanager:GetSecretValue", PATTERN.replace("pager", "other")),
        ("secretsmanager:DescribeSecret", PATTERN),
    ],
)
def test_a_secret_that_the_role_may_not_read_is_wrong(aws, action, arn):
    aws("secretsmanager").create_secret(Name="pager", SecretString=GOOD)
    ((state, found),) = states(checked(aws, action=action, arn=arn))
    assert (state, " may not read arn:aws:secretsmanager:" in found) == ("wrong", True)


def test_a_key_of_ones_own_has_to_let_the_role_decrypt(aws):
    key = aws("kms").create_key()["KeyMetadata"]["Arn"]
    aws("secretsmanager").create_secret(Name="pager", SecretString=GOOD, KmsKeyId=key)
    (found,) = checked(aws)
    assert (found.state, found.found) == ("absent", f"pager is encrypted with your own key {key}")
    assert "decrypt" in found.hint


class Refusing:
    """A client without some of its permissions."""

    def __init__(self, client: Any, *operations: str):
        self._client = client
        self._operations = operations

    def __getattr__(self, name: str) -> Any:
        if name in self._operations:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, name)
        return getattr(self._client, name)


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ("get_secret_value", "the content of pager was not checked"),
        ("list_role_policies", "whether the function may read pager is not known"),
    ],
)
def test_what_the_caller_may_not_read_is_not_wrong(aws, operation, text):
    aws("secretsmanager").create_secret(Name="pager", SecretString=GOOD)
    ((state, found),) = states(checked(aws, clients=lambda service: Refusing(aws(service), operation)))
    assert state == "absent"
    assert text in found
