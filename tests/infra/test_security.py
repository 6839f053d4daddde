"""The promises of docs/security.md, on the template itself."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest

from infra.arrivals_queue import PATTERNS, SUFFIXES
from infra.assets import ROOT
from infra.permissions import PAGE, written_into
from tests.infra.conftest import Stack, listed

UNTRUSTED = "DebuggerCustomRules"
MAY_BE_PATTERNS = {
    "s3:GetObject",
    "s3:PutObject",
    "scheduler:CreateSchedule",
    "scheduler:UpdateSchedule",
    "sagemaker:StopTrainingJob",
    "sagemaker:ListTrainingJobs",
    *(f"logs:{what}LogDelivery" for what in ("Create", "Get", "Update", "Delete")),
    *("logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies"),
    "logs:DescribeLogGroups",
}


def statements(stack: Stack) -> list[dict[str, Any]]:
    """Everything that is allowed to anybody, by roles or by resources."""
    return [
        statement
        for properties in (one.get("Properties", {}) for one in stack.resources.values())
        for document in ("PolicyDocument", "AssumeRolePolicyDocument")
        for statement in properties.get(document, {}).get("Statement", ())
        if statement["Effect"] == "Allow"
    ]


def untrusted_roles(stack: Stack) -> set[str]:
    functions = stack.of("AWS::Lambda::Function").values()
    return {
        one["Role"]["Fn::GetAtt"][0]
        for one in functions
        if one["Handler"] == "functions.handlers.run_custom_rule.handler"
    }


def written_keys(stack: Stack) -> set[str]:
    """Every key that some role may write, as a pattern within its bucket."""
    return {
        stack.text(resource).split(":::")[1].partition("/")[2]
        for statement in statements(stack)
        if "s3:PutObject" in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def test_every_function_has_a_role_of_its_own_and_no_ready_made_policies(stack: Stack):
    functions = stack.of("AWS::Lambda::Function")
    roles = [one["Role"]["Fn::GetAtt"][0] for one in functions.values()]
    assert len(set(roles)) == len(functions) >= 11
    assert all("ManagedPolicyArns" not in role for role in stack.of("AWS::IAM::Role").values())
    assert all(len(policy["Roles"]) == 1 for policy in stack.of("AWS::IAM::Policy").values())


def test_no_action_is_a_wildcard(stack: Stack):
    actions = {action for one in statements(stack) for action in listed(one["Action"])}
    assert len(actions) > 20
    assert not [action for action in actions if "*" in action]


def test_a_resource_is_a_pattern_only_where_it_has_to_be(stack: Stack):
    for statement in statements(stack):
        for resource in listed(statement.get("Resource", [])):
            if "*" in stack.text(resource):
                assert set(listed(statement["Action"])) <= MAY_BE_PATTERNS, statement


def test_only_listing_jobs_and_setting_up_logs_is_allowed_on_everything(stack: Stack):
    on_everything = {
        action
        for statement in statements(stack)
        if statement.get("Resource") == "*"
        for action in listed(statement["Action"])
    }
    assert {action for action in on_everything if not action.startswith("logs:")} == {
        "sagemaker:ListTrainingJobs"
    }


def test_what_runs_custom_rules_may_write_its_own_log_and_nothing_else(stack: Stack):
    roles = untrusted_roles(stack)
    assert roles
    for role in roles:
        assert role.startswith(UNTRUSTED)
        (may,) = stack.statements_of(role)
        assert set(may["Action"]) == {"logs:CreateLogStream", "logs:PutLogEvents"}
        (log, _) = may["Resource"]["Fn::GetAtt"]
        assert log.removesuffix(log[-8:]) == role.removesuffix(role[-8:]).replace("Role", "Log")


def test_what_runs_custom_rules_is_told_nothing_but_its_file(stack: Stack):
    for function in stack.of("AWS::Lambda::Function").values():
        if function["Handler"] == "functions.handlers.run_custom_rule.handler":
            assert set(function.get("Environment", {}).get("Variables", {})) <= {
                "SMDEBUG_RULE_FILE"
            }


def test_only_the_claim_can_lend_access_to_a_custom_rule(stack: Stack):
    role = stack.one("AWS::IAM::Role", "DebuggerCustomRulesAccessRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    (claim, _) = trust["Principal"]["AWS"]["Fn::GetAtt"]
    assert claim.startswith("DebuggerClaimRole")
    assert role["MaxSessionDuration"] == 3600


def test_the_access_that_is_lent_reads_runs_and_writes_state_and_nothing_else(stack: Stack):
    (role,) = [
        name for name in stack.of("AWS::IAM::Role") if name.startswith("DebuggerCustomRulesAccess")
    ]
    may = {action for one in stack.statements_of(role) for action in listed(one["Action"])}
    assert may - {"kms:Decrypt", "kms:GenerateDataKey"} == {
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
    }
    (put,) = [one for one in stack.statements_of(role) if "s3:PutObject" in listed(one["Action"])]
    assert all(stack.text(one).endswith("state/*.state") for one in put["Resource"])


def test_the_workflow_alone_may_put_events(stack: Stack):
    allowed = [
        policy["Roles"]
        for policy in stack.of("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if "events:PutEvents" in listed(statement["Action"])
    ]
    machine = stack.one("AWS::StepFunctions::StateMachine")
    (publisher, _) = machine["RoleArn"]["Fn::GetAtt"]
    assert allowed == [[{"Ref": publisher}]]
    (denied,) = [one["Statement"] for one in stack.of("AWS::Events::EventBusPolicy").values()]
    assert denied["Effect"] == "Deny"
    assert denied["Principal"] == "*"
    assert denied["Action"] == "events:PutEvents"
    assert denied["Condition"] == {"ArnNotEquals": {"aws:PrincipalArn": machine["RoleArn"]}}


def test_services_send_to_queues_for_sources_of_this_account_only(stack: Stack):
    allowed = [
        statement
        for policy in stack.of("AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert allowed
    for statement in allowed:
        assert set(statement["Principal"]) == {"Service"}
        assert statement["Action"] == "sqs:SendMessage"
        sources = listed(statement["Condition"]["ArnEquals"]["aws:SourceArn"])
        assert sources
        assert not [one for one in map(stack.text, sources) if "*" in one]
        assert statement["Condition"]["StringEquals"] == {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"}
        }


def test_functions_are_called_by_rules_of_this_account_only(stack: Stack):
    permissions = stack.of("AWS::Lambda::Permission").values()
    assert permissions
    for permission in permissions:
        assert permission["SourceAccount"] == {"Ref": "AWS::AccountId"}
        assert permission["SourceArn"]["Fn::GetAtt"][1] == "Arn"


def test_roles_are_taken_on_by_services_for_this_account_only(stack: Stack):
    for name, role in stack.of("AWS::IAM::Role").items():
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        service = trust["Principal"].get("Service")
        if service not in (None, "lambda.amazonaws.com"):  # functions take on only their own
            account = trust["Condition"]["StringEquals"]["aws:SourceAccount"]
            assert account == {"Ref": "AWS::AccountId"}, name


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        ("AWS::SQS::QueuePolicy", "AWS::SQS::Queue"),
        ("AWS::SNS::TopicPolicy", "AWS::SNS::Topic"),
        ("AWS::S3::BucketPolicy", "AWS::S3::Bucket"),
    ],
)
def test_everything_is_reached_over_tls_only(stack: Stack, policy: str, place: str):
    guarded = [
        statement
        for one in stack.of(policy).values()
        for statement in one["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]
    assert len(guarded) == len(stack.of(place))


def test_queues_topic_and_table_are_encrypted(default_stack: Stack, full_stack: Stack):
    for stack in (default_stack, full_stack):
        assert all(
            queue["SqsManagedSseEnabled"] is True for queue in stack.of("AWS::SQS::Queue").values()
        )
    assert default_stack.one("AWS::SNS::Topic")["KmsMasterKeyId"] == "alias/aws/sns"
    mine = "arn:aws:kms:us-east-1:123456789012:key/mine"
    assert full_stack.one("AWS::SNS::Topic")["KmsMasterKeyId"] == mine
    assert full_stack.one("AWS::DynamoDB::Table")["SSESpecification"]["KMSMasterKeyId"] == mine


def test_who_touches_the_table_may_use_its_key(full_stack: Stack):
    for policy in full_stack.of("AWS::IAM::Policy").values():
        may = {
            one for told in policy["PolicyDocument"]["Statement"] for one in listed(told["Action"])
        }
        if may & {"dynamodb:UpdateItem", "s3:GetObject", "sns:Publish"}:
            assert "kms:Decrypt" in may, policy["PolicyName"]
        if may & {"s3:PutObject", "sns:Publish"}:
            assert "kms:GenerateDataKey" in may, policy["PolicyName"]


def test_the_bucket_is_closed_to_the_public_and_encrypted(default_stack: Stack):
    bucket = default_stack.one("AWS::S3::Bucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]


def test_what_it_may_write_wakes_nobody(stack: Stack):
    keys = written_keys(stack)
    assert keys == {
        *("*/state/*.state", "state/*.state", "*/control/stop", "control/stop"),
        *("*/report/findings/*.finding", "report/findings/*.finding"),
        *("*/report/report.html", "report/report.html"),
    }
    assert not [key for key in keys if key.endswith(SUFFIXES)]
    for key in keys:
        sample = key.replace("*", "index/000000000/events/collections/a")
        for patterns in PATTERNS.values():
            for pattern in patterns:
                match pattern:
                    case {"wildcard": wildcard}:
                        assert not fnmatchcase(sample, wildcard)
                    case {"suffix": suffix}:
                        assert not sample.endswith(suffix)
                    case exact:
                        assert sample != exact


def test_what_writes_reports_writes_nothing_else(default_stack: Stack):
    (role,) = [one for one in default_stack.of("AWS::IAM::Role") if "WriteReport" in one]
    may = list(default_stack.statements_of(role))
    actions = {action for one in may for action in listed(one["Action"])}
    assert {one for one in actions if not one.startswith(("logs:", "sqs:"))} == {
        *("dynamodb:Query", "s3:GetObject", "s3:ListBucket", "s3:PutObject"),
    }
    (put,) = [one for one in may if "s3:PutObject" in listed(one["Action"])]
    keys = [default_stack.text(one) for one in listed(put["Resource"])]
    assert all(one.endswith("/report/report.html") for one in keys)


def test_no_secret_is_in_the_template(full_stack: Stack):
    for destination in full_stack.of("AWS::Events::ApiDestination").values():
        assert re.fullmatch(
            r"\{\{resolve:secretsmanager:\w+:SecretString:url::\}\}",
            destination["InvocationEndpoint"],
        )
    for connection in full_stack.of("AWS::Events::Connection").values():
        token = connection["AuthParameters"]["ApiKeyAuthParameters"]["ApiKeyValue"]
        assert re.fullmatch(r"\{\{resolve:secretsmanager:\w+:SecretString:token::\}\}", token)


def test_failures_are_logged_without_what_was_passed(stack: Stack):
    logging = stack.one("AWS::StepFunctions::StateMachine")["LoggingConfiguration"]
    assert logging["IncludeExecutionData"] is False
    assert logging["Level"] == "ERROR"


def test_nothing_brings_a_function_of_its_own(stack: Stack):
    types = {resource["Type"] for resource in stack.resources.values()}
    assert not [one for one in types if one.startswith("Custom::") or "CustomResource" in one]
    handlers = {one["Handler"] for one in stack.of("AWS::Lambda::Function").values()}
    assert all(handler.startswith("functions.") for handler in handlers)


def test_a_pattern_without_a_reason_is_refused(tmp_path):
    import aws_cdk as cdk
    from aws_cdk import aws_iam as iam

    from infra.acknowledgments import ReasonMissing
    from infra.python_function import allow

    scope = cdk.Stack(cdk.App(outdir=str(tmp_path)), "Stack")
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    with pytest.raises(ReasonMissing, match="Stack/Role may touch arn:aws:s3:::b/"):
        allow(role, "s3:GetObject", on=["arn:aws:s3:::b/*"])


def test_the_security_page_tells_the_permissions_as_they_are():
    page = PAGE.read_text(encoding="utf-8")
    assert "| Ingest |" in page
    assert page == written_into(page), "python -m infra.permissions brings it up to date"


def test_the_template_names_no_machine_and_no_account(stack: Stack):
    text = json.dumps(stack.template)
    assert str(ROOT) not in text
    for folder in ROOT.parents[:-1]:  # all that this checkout lies in
        assert f"{folder}/" not in text
    assert not re.search(r"(?<!:)\b\d{12}\b(?!:key/mine)", text)
