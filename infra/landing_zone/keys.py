"""A customer's key on everything that takes one, and the permissions that go with it."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

_READ = ("Decrypt",)
_WRITE = ("Decrypt", "GenerateDataKey")
_TABLE = ("Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey")
NEEDED = {
    "s3:GetObject": _READ,
    "s3:PutObject": _WRITE,  # the parts of an upload are decrypted again
    "dynamodb:GetItem": _READ,
    "dynamodb:Query": _READ,
    "dynamodb:PutItem": _TABLE,
    "dynamodb:UpdateItem": _TABLE,
    "dynamodb:DeleteItem": _TABLE,
    "sqs:SendMessage": _WRITE,
    "sqs:ReceiveMessage": _READ,
    "sns:Publish": _WRITE,
    "states:StartExecution": _WRITE,
    "logs:CreateLogDelivery": _WRITE,  # a state machine's own role, which also encrypts the executions
}
"""What a role needs on the key for an action on something that is encrypted with it."""


def encrypt_all(construct: Construct, key: kms.IKey) -> None:
    """Encrypt everything below the construct with the key; let each role use it as far as it needs to."""
    for node in construct.node.find_all():
        _encrypt(node, key.key_arn)
        if isinstance(node, iam.Role) and (needed := sorted(_needed_by(node))):
            node.add_to_policy(
                iam.PolicyStatement(actions=[f"kms:{action}" for action in needed], resources=[key.key_arn])
            )


def _encrypt(node: object, arn: str) -> None:
    """Set the key of what is not encrypted with it already, as bucket and table are."""
    match node:
        case sqs.CfnQueue():
            node.kms_master_key_id, node.sqs_managed_sse_enabled = arn, None
        case sns.CfnTopic():
            node.kms_master_key_id = arn
        case logs.CfnLogGroup():
            node.kms_key_id = arn
        case lambda_.CfnFunction():
            node.kms_key_arn = arn
        case events.CfnEventBus():
            node.kms_key_identifier = arn
        case sfn.CfnStateMachine():
            node.encryption_configuration = sfn.CfnStateMachine.EncryptionConfigurationProperty(
                type="CUSTOMER_MANAGED_KMS_KEY", kms_key_id=arn, kms_data_key_reuse_period_seconds=900
            )


def _needed_by(role: iam.Role) -> set[str]:
    return {needed for action in _actions_of(role) for needed in NEEDED.get(action, ())}


def _actions_of(role: iam.Role) -> Iterator[str]:
    policy = role.node.try_find_child("DefaultPolicy")
    if isinstance(policy, iam.Policy):
        for statement in policy.document.to_json()["Statement"]:
            actions = statement["Action"]
            yield from [actions] if isinstance(actions, str) else actions
