"""The promises of docs/security.md, on the template itself."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest

from infra.events.arrivals_queue import PATTERNS, SUFFIXES
from infra.packaging.assets import ROOT
from infra.permissions import PAGE, written_into
from infra.settings import Settings
from tests.infra.conftest import Stack, listed
from tests.support.looking import each

UNTRUSTED = "DebuggerCustomRules"
PATTERNS_ALLOWED = {
    "s3:GetObject",
    "s3:PutObject",
    "scheduler:CreateSchedule",
    "scheduler:UpdateSchedule",
    "sagemaker:DescribeTrainingJob",
    "sagemaker:ListTags",
    "sagemaker:StopTrainingJob",
    "sagemaker:ListTrainingJobs",
    *(f"batch:{what}" for what in ("DescribeJobs", "ListJobs", "TerminateJob")),
    *(f"logs:{what}LogDelivery" for what in ("Create", "Get", "Update", "Delete")),
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    *(f"logs:Describe{what}" for what in ("ResourcePolicies", "LogGroups")),
}


def statements(stack: Stack) -> list[dict[str, Any]]:
    """Every statement that allows something, of roles and of resources."""
    return [
        statement
        for properties in (resource.get("Properties", {}) for resource in stack.resources.values())
        for document in ("PolicyDocument", "AssumeRolePolicyDocument")
        for statement in properties.get(document, {}).get("Statement", ())
        if statement["Effect"] == "Allow"
    ]


def untrusted_roles(stack: Stack) -> set[str]:
    functions = stack.of("AWS::Lambda::Function").values()
    return {
        function["Role"]["Fn::GetAtt"][0]
        for function in functions
        if function["Handler"] == "functions.handlers.run_custom_rule.handler"
    }


def written_keys(stack: Stack) -> set[str]:
    """Every key that some role may write, as a pattern within its bucket."""
    return {
        stack.text(resource).split(":::")[1].partition("/")[2]
        for statement in statements(stack)
        if "s3:PutObject" in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def test_every_function_has_its_own_role_and_no_managed_policies(stack: Stack):
    functions = stack.of("AWS::Lambda::Function")
    roles = [function["Role"]["Fn::GetAtt"][0] for function in functions.values()]
    assert len(set(roles)) == len(functions) >= 11
    assert all("ManagedPolicyArns" not in role for role in stack.of("AWS::IAM::Role").values())
    assert all(len(policy["Roles"]) == 1 for policy in stack.of("AWS::IAM::Policy").values())


def test_no_action_is_a_wildcard(stack: Stack):
    actions = {action for statement in statements(stack) for action in listed(statement["Action"])}
    assert len(actions) > 20
    assert not [action for action in actions if "*" in action]


def test_a_resource_is_a_pattern_only_where_necessary(stack: Stack):
    for statement in each(statements(stack), at_least=90):
        for resource in listed(statement.get("Resource", [])):
            if "*" in stack.text(resource):
                assert set(listed(statement["Action"])) <= PATTERNS_ALLOWED, statement


def test_only_listing_jobs_and_log_delivery_are_allowed_on_everything(stack: Stack):
    on_everything = {
        action
        for statement in statements(stack)
        if statement.get("Resource") == "*"
        for action in listed(statement["Action"])
    }
    of_batch = {"batch:DescribeJobs", "batch:ListJobs"}  # only with `batch_queues`
    assert {action for action in on_everything if not action.startswith("logs:")} - of_batch == {
        "sagemaker:ListTrainingJobs"
    }


def test_functions_with_custom_rules_may_only_write_their_logs(stack: Stack):
    roles = untrusted_roles(stack)
    assert roles
    for role in roles:
        assert role.startswith(UNTRUSTED)
        (may,) = stack.statements_of(role)
        assert set(may["Action"]) == {"logs:CreateLogStream", "logs:PutLogEvents"}
        (log, _) = may["Resource"]["Fn::GetAtt"]
        assert log.removesuffix(log[-8:]) == role.removesuffix(role[-8:]).replace("Role", "Log")


def test_functions_with_custom_rules_know_only_their_file(stack: Stack):
    for function in each(stack.of("AWS::Lambda::Function").values(), at_least=10):
        if function["Handler"] == "functions.handlers.run_custom_rule.handler":
            assert set(function.get("Environment", {}).get("Variables", {})) <= {"SMDEBUG_RULE_FILE"}


def test_only_claim_can_lend_access_to_a_custom_rule(stack: Stack):
    role = stack.single("AWS::IAM::Role", "DebuggerCustomRulesAccessRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    (claim, _) = trust["Principal"]["AWS"]["Fn::GetAtt"]
    assert claim.startswith("DebuggerClaimRole")
    assert role["MaxSessionDuration"] == 3600


def test_lent_access_only_reads_runs_and_writes_state(stack: Stack):
    (role,) = [name for name in stack.of("AWS::IAM::Role") if name.startswith("DebuggerCustomRulesAccess")]
    may = {action for statement in stack.statements_of(role) for action in listed(statement["Action"])}
    assert may - {"kms:Decrypt", "kms:GenerateDataKey"} == {
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
    }
    (put,) = [
        statement for statement in stack.statements_of(role) if "s3:PutObject" in listed(statement["Action"])
    ]
    assert all(stack.text(resource).endswith("state/*.state") for resource in listed(put["Resource"]))


def test_only_the_workflow_may_put_events(stack: Stack):
    allowed = [
        policy["Roles"]
        for policy in stack.of("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if "events:PutEvents" in listed(statement["Action"])
    ]
    machine = stack.single("AWS::StepFunctions::StateMachine")
    (publisher, _) = machine["RoleArn"]["Fn::GetAtt"]
    assert allowed == [[{"Ref": publisher}]]
    (denied,) = [policy["Statement"] for policy in stack.of("AWS::Events::EventBusPolicy").values()]
    assert denied["Effect"] == "Deny"
    assert denied["Principal"] == "*"
    assert denied["Action"] == "events:PutEvents"
    assert denied["Condition"] == {"ArnNotEquals": {"aws:PrincipalArn": machine["RoleArn"]}}


def senders(stack: Stack) -> list[dict[str, Any]]:
    """Every statement that lets somebody send to a queue."""
    return [
        statement
        for policy in stack.of("AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]


def test_only_services_send_to_queues_and_for_named_sources(stack: Stack):
    assert senders(stack)
    for statement in senders(stack):
        assert set(statement["Principal"]) == {"Service"}
        assert statement["Action"] == "sqs:SendMessage"
        sources = listed(statement["Condition"]["ArnEquals"]["aws:SourceArn"])
        assert sources
        assert not [source for source in sources if "*" in stack.text(source)]


def test_services_whose_sources_do_not_name_their_account_send_for_this_account_only(stack: Stack):
    """The ARN of a bucket names no account; that of a rule of EventBridge does, which sends no account."""
    for statement in each(senders(stack), at_least=2):
        is_eventbridge = statement["Principal"]["Service"] == "events.amazonaws.com"
        this_account = {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        assert statement["Condition"].get("StringEquals") == (None if is_eventbridge else this_account)


def test_only_rules_of_this_account_may_call_functions(stack: Stack):
    permissions = stack.of("AWS::Lambda::Permission").values()
    assert permissions
    for permission in permissions:
        assert "SourceAccount" not in permission, "EventBridge sends no aws:SourceAccount"
        assert permission["SourceArn"]["Fn::GetAtt"][1] == "Arn"


def test_services_assume_roles_for_this_account_only(stack: Stack):
    for name, role in each(stack.of("AWS::IAM::Role").items(), at_least=10):
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        service = trust["Principal"].get("Service")
        if service not in (None, "lambda.amazonaws.com"):  # functions assume only their own
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
def test_tls_is_required_everywhere(stack: Stack, policy: str, place: str):
    guarded = [
        statement
        for guard in stack.of(policy).values()
        for statement in guard["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]
    assert len(guarded) == len(stack.of(place))


def test_queues_topic_and_table_are_encrypted(default_stack: Stack, full_stack: Stack):
    assert all(
        queue["SqsManagedSseEnabled"] is True for queue in default_stack.of("AWS::SQS::Queue").values()
    )
    alerts = "DebuggerAlertsTopic"
    assert default_stack.single("AWS::SNS::Topic", alerts)["KmsMasterKeyId"] == "alias/aws/sns"
    mine = "arn:aws:kms:us-east-1:123456789012:key/mine"
    assert full_stack.single("AWS::SNS::Topic", alerts)["KmsMasterKeyId"] == mine
    assert full_stack.single("AWS::DynamoDB::Table")["SSESpecification"]["KMSMasterKeyId"] == mine


def test_the_bucket_is_closed_to_the_public_and_encrypted(default_stack: Stack):
    bucket = default_stack.single("AWS::S3::Bucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]


def is_matched(key: str, pattern: str | dict[str, str]) -> bool:
    """Whether a rule of EventBridge with this pattern of keys matches."""
    match pattern:
        case {"wildcard": wildcard}:
            return fnmatchcase(key, wildcard)
        case {"suffix": suffix}:
            return key.endswith(suffix)
        case exact:
            return key == exact


def test_roles_write_requests_reports_and_the_state_of_rules(stack: Stack):
    assert written_keys(stack) == {
        "*/state/*.state",
        "*/control/stop",
        "*/control/zoom",
        "*/report/findings/*.finding",
        "*/report/report.html",
    }


def test_keys_that_roles_may_write_start_nothing(stack: Stack):
    """Not even where the parts that a pattern leaves open are like those of a run's own files."""
    patterns = [pattern for kind in PATTERNS.values() for pattern in kind]
    keys = [key.replace("*", "index/000000000/events/collections/a") for key in written_keys(stack)]
    assert not [key for key in keys if key.endswith(SUFFIXES)]
    assert not [(key, pattern) for key in keys for pattern in patterns if is_matched(key, pattern)]


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("mnist/events/000000000007/000000000007_worker_0.tfevents", "EventFiles"),
        ("index/000000000/000000000007_worker_0.json", "IndexFiles"),
        ("mnist/collections/000000000/worker_0_collections.json", "CollectionFiles"),
        ("mnist/training_job_end.ts", "OtherFiles"),
        ("rules.json", "OtherFiles"),
    ],
)
def test_keys_of_a_runs_own_files_start_something(key: str, kind: str):
    assert any(is_matched(key, pattern) for pattern in PATTERNS[kind])
    assert key.endswith(SUFFIXES)


def test_write_report_writes_only_reports(default_stack: Stack):
    (role,) = [role for role in default_stack.of("AWS::IAM::Role") if "WriteReport" in role]
    may = list(default_stack.statements_of(role))
    actions = {action for statement in may for action in listed(statement["Action"])}
    assert {action for action in actions if not action.startswith(("logs:", "sqs:"))} == {
        "dynamodb:Query",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
    }
    (put,) = [statement for statement in may if "s3:PutObject" in listed(statement["Action"])]
    keys = [default_stack.text(resource) for resource in listed(put["Resource"])]
    assert all(key.endswith("/report/report.html") for key in keys)


def actions_of(stack: Stack, role: str) -> set[str]:
    return {action for statement in stack.statements_of(role) for action in listed(statement["Action"])}


def test_the_url_of_a_webhook_is_neither_in_the_template_nor_resolved_into_it(full_stack: Stack):
    assert "{{resolve:" not in json.dumps(full_stack.resources)
    assert not full_stack.of("AWS::Events::ApiDestination")


@pytest.mark.parametrize(("function", "secret"), [("PostToSlack", "slack"), ("PostToWebhook", "pager")])
def test_the_url_of_a_webhook_is_read_by_its_function_alone(full_stack: Stack, function: str, secret: str):
    readers = [
        role
        for role in full_stack.of("AWS::IAM::Role")
        if f":secret:{secret}-" in json.dumps(full_stack.statements_of(role))
    ]
    (role,) = readers
    assert function in role
    others = {act for act in actions_of(full_stack, role) if not act.startswith(("logs:", "kms:"))}
    assert others == {"secretsmanager:GetSecretValue", "sqs:SendMessage"}


def test_a_parameter_is_read_by_its_exact_name(synthesize):
    stack = synthesize(Settings(slack_secret="ssm:/smdebug/slack"))
    (role,) = [role for role in stack.of("AWS::IAM::Role") if "PostToSlack" in role]
    (reads,) = [
        statement
        for statement in stack.statements_of(role)
        if listed(statement["Action"]) == ["ssm:GetParameter"]
    ]
    (resource,) = listed(reads["Resource"])
    assert stack.text(resource).endswith(":parameter/smdebug/slack")


def test_failures_are_logged_without_their_data(stack: Stack):
    logging = stack.single("AWS::StepFunctions::StateMachine")["LoggingConfiguration"]
    assert logging["IncludeExecutionData"] is False
    assert logging["Level"] == "ERROR"


def test_cdk_adds_no_functions(stack: Stack):
    types = {resource["Type"] for resource in stack.resources.values()}
    assert not [kind for kind in types if kind.startswith("Custom::") or "CustomResource" in kind]
    handlers = {function["Handler"] for function in stack.of("AWS::Lambda::Function").values()}
    assert all(handler.startswith("functions.") for handler in handlers)


def test_a_pattern_without_a_reason_is_refused(tmp_path):
    import aws_cdk as cdk
    from aws_cdk import aws_iam as iam

    from infra.acknowledgments import ReasonMissing
    from infra.roles import allow

    scope = cdk.Stack(cdk.App(outdir=str(tmp_path)), "Stack")
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    with pytest.raises(ReasonMissing, match="Stack/Role may touch arn:aws:s3:::b/"):
        allow(role, "s3:GetObject", on=["arn:aws:s3:::b/*"])


def test_the_table_of_permissions_in_the_docs_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert "| Ingest |" in page
    assert page == written_into(page), "update it with python -m infra.permissions"


def test_the_template_names_no_machine_and_no_account(stack: Stack):
    text = json.dumps(stack.template)
    assert str(ROOT) not in text
    for folder in ROOT.parents[:-1]:  # the parents of this checkout
        assert f"{folder}/" not in text
    assert not re.search(r"(?<!:)\b\d{12}\b(?!:key/mine)", text)
