"""IAM's decisions, as far as the application leans on them."""

from __future__ import annotations

import pytest

from local_aws.calls import Asked, Request, asked_by
from local_aws.errors import Unsupported
from local_aws.permissions import Caller, Policies, Refused, session_of

ROLE = "arn:aws:iam::123456789012:role/reader"
TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/t"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:q"


def allow(action, resource, **more):
    return {"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource, **more}]}


def policies(*documents) -> Policies:
    made = Policies()
    made.add_role(ROLE, {"Statement": []})
    for document in documents:
        made.add_to_role(ROLE, document)
    return made


def test_what_no_policy_allows_is_refused():
    made = policies(allow("dynamodb:GetItem", TABLE))
    made.check(Caller(ROLE), Asked("dynamodb:GetItem", TABLE))
    for asked in (Asked("dynamodb:PutItem", TABLE), Asked("dynamodb:GetItem", TABLE + "2")):
        with pytest.raises(Refused):
            made.check(Caller(ROLE), asked)


@pytest.mark.parametrize(
    ("pattern", "key", "fits"),
    [
        ("arn:aws:s3:::b/*/state/*.state", "run/1/state/x.state", True),
        ("arn:aws:s3:::b/*/state/*.state", "run/1/state/x.json", False),
        ("arn:aws:s3:::b/a${*}b/*", "a*b/x", True),
        ("arn:aws:s3:::b/a${*}b/*", "aab/x", False),
        ("arn:aws:s3:::b/?/x", "a/x", True),
        ("arn:aws:s3:::b/?/x", "ab/x", False),
    ],
)
def test_a_pattern_stands_for_the_keys_that_fit_it(pattern, key, fits):
    made = policies(allow("s3:GetObject", pattern))
    asked = Asked("s3:GetObject", f"arn:aws:s3:::b/{key}")
    if fits:
        made.check(Caller(ROLE), asked)
    else:
        with pytest.raises(Refused):
            made.check(Caller(ROLE), asked)


def test_a_deny_wins_over_whatever_allows():
    made = policies(allow("sqs:*", QUEUE))
    deny = {"Effect": "Deny", "Action": "sqs:SendMessage", "Resource": QUEUE, "Principal": "*"}
    made.check(Caller(ROLE), Asked("sqs:SendMessage", QUEUE))
    made.add_to_resource(QUEUE, {"Statement": [deny]})
    with pytest.raises(Refused, match="explicit deny"):
        made.check(Caller(ROLE), Asked("sqs:SendMessage", QUEUE))


def test_a_session_can_do_no_more_than_its_policy_and_its_role_both_allow():
    made = policies(allow("s3:GetObject", "arn:aws:s3:::b/*"))
    session = session_of(
        '{"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::b/run/*"},'
        ' {"Effect": "Deny", "Action": "s3:GetObject", "NotResource": "*/index/*"}]}'
    )
    narrowed = Caller(ROLE, session)
    made.check(narrowed, Asked("s3:GetObject", "arn:aws:s3:::b/run/index/1"))
    for action, key in [
        ("s3:GetObject", "other/index/1"),
        ("s3:GetObject", "run/state/1"),
        ("s3:PutObject", "run/index/1"),
    ]:
        with pytest.raises(Refused):
            made.check(narrowed, Asked(action, f"arn:aws:s3:::b/{key}"))


def test_a_condition_has_to_hold():
    condition = {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
    made = policies(allow("iam:PassRole", ROLE, Condition=condition))
    made.check(
        Caller(ROLE),
        Asked("iam:PassRole", ROLE, {"iam:PassedToService": "scheduler.amazonaws.com"}),
    )
    for context in ({"iam:PassedToService": "ec2.amazonaws.com"}, {}):
        with pytest.raises(Refused):
            made.check(Caller(ROLE), Asked("iam:PassRole", ROLE, context))


def test_a_service_delivers_only_where_the_receiver_takes_it_from_that_source():
    made = Policies()
    statement = {
        "Effect": "Allow",
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        "Principal": {"Service": "s3.amazonaws.com"},
        "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::mine"}},
    }
    made.add_to_resource(QUEUE, {"Statement": [statement]})
    asked = Asked("sqs:SendMessage", QUEUE)
    made.may_deliver("s3.amazonaws.com", asked, "arn:aws:s3:::mine")
    for service, source in [
        ("s3.amazonaws.com", "arn:aws:s3:::other"),
        ("events.amazonaws.com", "arn:aws:s3:::mine"),
    ]:
        with pytest.raises(Refused):
            made.may_deliver(service, asked, source)


def test_what_was_never_needed_is_listed():
    made = policies(allow(["dynamodb:GetItem", "dynamodb:Query"], TABLE))
    made.check(Caller(ROLE), Asked("dynamodb:GetItem", TABLE))
    assert made.unused() == [(ROLE, "dynamodb:Query", TABLE)]


@pytest.mark.parametrize(
    "policy",
    [
        {"Statement": [{"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}]},
        allow("s3:GetObject", "*", Condition={"DateLessThan": {"aws:SourceArn": "2026"}}),
    ],
)
def test_a_policy_that_uses_something_unknown_raises(policy):
    with pytest.raises(Unsupported):
        made = policies(policy)
        made.check(Caller(ROLE), Asked("s3:GetObject", "x", {"aws:SourceArn": "1"}))


def test_a_transaction_needs_what_each_of_its_parts_does():
    body = b'{"TransactItems": [{"Put": {"TableName": "t"}}, {"Delete": {"TableName": "t"}}]}'
    request = Request("dynamodb", "POST", "/", "", "DynamoDB_20120810.TransactWriteItems", body)
    assert [one.action for one in asked_by(request)] == ["dynamodb:PutItem", "dynamodb:DeleteItem"]


def test_a_call_that_nobody_knows_to_check_raises():
    with pytest.raises(Unsupported):
        asked_by(Request("ec2", "POST", "/", "", "", b""))
    with pytest.raises(Unsupported):
        asked_by(Request("s3", "GET", "/bucket", "policy", "", b""))
