"""The parts of IAM that the application relies on."""

from __future__ import annotations

import contextlib

import pytest

from local_aws.errors import Unsupported
from local_aws.permissions.calls import Permission, Request, permissions_for
from local_aws.permissions.policies import Caller, Policies, Refused, session_statements

ROLE = "arn:aws:iam::123456789012:role/reader"
TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/t"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:q"


def allow(action, resource, **more):
    return {"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource, **more}]}


def policies(*documents) -> Policies:
    granted = Policies()
    granted.add_role(ROLE, {"Statement": []})
    for document in documents:
        granted.add_to_role(ROLE, document)
    return granted


def test_a_call_that_no_policy_allows_is_refused():
    granted = policies(allow("dynamodb:GetItem", TABLE))
    granted.check(Caller(ROLE), Permission("dynamodb:GetItem", TABLE))
    for permission in (
        Permission("dynamodb:PutItem", TABLE),
        Permission("dynamodb:GetItem", TABLE + "2"),
    ):
        with pytest.raises(Refused):
            granted.check(Caller(ROLE), permission)


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("arn:aws:s3:::b/*/state/*.state", "run/1/state/x.state", True),
        ("arn:aws:s3:::b/*/state/*.state", "run/1/state/x.json", False),
        ("arn:aws:s3:::b/a${*}b/*", "a*b/x", True),
        ("arn:aws:s3:::b/a${*}b/*", "aab/x", False),
        ("arn:aws:s3:::b/?/x", "a/x", True),
        ("arn:aws:s3:::b/?/x", "ab/x", False),
    ],
)
def test_a_pattern_matches_its_keys_only(pattern, key, matches):
    granted = policies(allow("s3:GetObject", pattern))
    permission = Permission("s3:GetObject", f"arn:aws:s3:::b/{key}")
    if matches:
        granted.check(Caller(ROLE), permission)
    else:
        with pytest.raises(Refused):
            granted.check(Caller(ROLE), permission)


def test_a_deny_overrides_every_allow():
    granted = policies(allow("sqs:*", QUEUE))
    deny = {"Effect": "Deny", "Action": "sqs:SendMessage", "Resource": QUEUE, "Principal": "*"}
    granted.check(Caller(ROLE), Permission("sqs:SendMessage", QUEUE))
    granted.add_to_resource(QUEUE, {"Statement": [deny]})
    with pytest.raises(Refused, match="explicit deny"):
        granted.check(Caller(ROLE), Permission("sqs:SendMessage", QUEUE))


def test_a_session_may_do_only_what_its_policy_and_its_role_both_allow():
    granted = policies(allow("s3:GetObject", "arn:aws:s3:::b/*"))
    session = session_statements(
        '{"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::b/run/*"},'
        ' {"Effect": "Deny", "Action": "s3:GetObject", "NotResource": "*/index/*"}]}'
    )
    narrowed = Caller(ROLE, session)
    granted.check(narrowed, Permission("s3:GetObject", "arn:aws:s3:::b/run/index/1"))
    for action, key in [
        ("s3:GetObject", "other/index/1"),
        ("s3:GetObject", "run/state/1"),
        ("s3:PutObject", "run/index/1"),
    ]:
        with pytest.raises(Refused):
            granted.check(narrowed, Permission(action, f"arn:aws:s3:::b/{key}"))


def test_a_statement_applies_only_if_its_condition_holds():
    condition = {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
    granted = policies(allow("iam:PassRole", ROLE, Condition=condition))
    granted.check(
        Caller(ROLE),
        Permission("iam:PassRole", ROLE, {"iam:PassedToService": "scheduler.amazonaws.com"}),
    )
    for context in ({"iam:PassedToService": "ec2.amazonaws.com"}, {}):
        with pytest.raises(Refused):
            granted.check(Caller(ROLE), Permission("iam:PassRole", ROLE, context))


def test_a_service_delivers_only_if_the_receiver_accepts_its_source():
    granted = Policies()
    statement = {
        "Effect": "Allow",
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        "Principal": {"Service": "s3.amazonaws.com"},
        "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::mine"}},
    }
    granted.add_to_resource(QUEUE, {"Statement": [statement]})
    permission = Permission("sqs:SendMessage", QUEUE)
    granted.may_deliver("s3.amazonaws.com", permission, "arn:aws:s3:::mine")
    for service, source in [
        ("s3.amazonaws.com", "arn:aws:s3:::other"),
        ("events.amazonaws.com", "arn:aws:s3:::mine"),
    ]:
        with pytest.raises(Refused):
            granted.may_deliver(service, permission, source)


RULE = "arn:aws:events:us-east-1:123456789012:rule/r"
OF_THIS_ACCOUNT = {"StringEquals": {"aws:SourceAccount": "123456789012"}}


@pytest.mark.parametrize(
    ("service", "source", "passes"),
    [("s3.amazonaws.com", "arn:aws:s3:::mine", True), ("events.amazonaws.com", RULE, False)],
)
def test_a_service_sends_only_the_condition_keys_of_its_guide(service, source, passes):
    granted = Policies()
    statement = {
        "Effect": "Allow",
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        "Principal": {"Service": service},
        "Condition": OF_THIS_ACCOUNT,
    }
    granted.add_to_resource(QUEUE, {"Statement": [statement]})
    with contextlib.nullcontext() if passes else pytest.raises(Refused):
        granted.may_deliver(service, Permission("sqs:SendMessage", QUEUE), source)


@pytest.mark.parametrize(
    ("service", "passes"),
    [
        ("events.amazonaws.com", True),
        ("states.amazonaws.com", True),
        ("lambda.amazonaws.com", False),
    ],
)
def test_a_role_that_demands_the_account_is_assumed_by_services_that_send_it(service, passes):
    granted = Policies()
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Condition": OF_THIS_ACCOUNT}
    granted.add_role(ROLE, {"Statement": [{**trust, "Principal": {"Service": service}}]})
    with contextlib.nullcontext() if passes else pytest.raises(Refused):
        granted.may_assume(service, ROLE, RULE)


def test_the_calls_of_a_role_carry_no_source():
    granted = policies(allow("dynamodb:GetItem", TABLE, Condition=OF_THIS_ACCOUNT))
    with pytest.raises(Refused):
        granted.check(Caller(ROLE), Permission("dynamodb:GetItem", TABLE))


def test_unused_permissions_are_listed():
    granted = policies(allow(["dynamodb:GetItem", "dynamodb:Query"], TABLE))
    granted.check(Caller(ROLE), Permission("dynamodb:GetItem", TABLE))
    assert granted.unused() == [(ROLE, "dynamodb:Query", TABLE)]


def test_a_statement_is_needless_until_it_alone_allows_a_call():
    granted = policies(allow("dynamodb:*", TABLE), allow("dynamodb:GetItem", [TABLE, QUEUE]))
    granted.check(Caller(ROLE), Permission("dynamodb:GetItem", TABLE))  # both allow it
    assert [statement.actions for _, statement in granted.needless()] == [
        ("dynamodb:*",),
        ("dynamodb:GetItem",),
    ]
    granted.check(Caller(ROLE), Permission("dynamodb:Query", TABLE))
    assert [statement.actions for _, statement in granted.needless()] == [("dynamodb:GetItem",)]


@pytest.mark.parametrize(
    "policy",
    [
        {"Statement": [{"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}]},
        allow("s3:GetObject", "*", Condition={"DateLessThan": {"aws:SourceArn": "2026"}}),
    ],
)
def test_a_policy_with_an_unknown_element_raises(policy):
    with pytest.raises(Unsupported):
        granted = policies(policy)
        granted.check(Caller(ROLE), Permission("s3:GetObject", "x", {"aws:SourceArn": "1"}))


def test_a_transaction_needs_the_permissions_of_its_parts():
    body = b'{"TransactItems": [{"Put": {"TableName": "t"}}, {"Delete": {"TableName": "t"}}]}'
    request = Request("dynamodb", "POST", "/", "", "DynamoDB_20120810.TransactWriteItems", body)
    assert [permission.action for permission in permissions_for(request)] == [
        "dynamodb:PutItem",
        "dynamodb:DeleteItem",
    ]


def test_a_call_whose_permissions_are_unknown_raises():
    with pytest.raises(Unsupported):
        permissions_for(Request("ec2", "POST", "/", "", "", b""))
    with pytest.raises(Unsupported):
        permissions_for(Request("s3", "GET", "/bucket", "policy", "", b""))
