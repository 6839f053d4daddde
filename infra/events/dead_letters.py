"""Queues that keep their failures: a message that could not be handled is kept for two weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

LONGEST = cdk.Duration.days(14)


def encrypted_queue(
    scope: Construct,
    id: str,
    *,
    visible_again_after: cdk.Duration | None = None,
    dead_letters: sqs.Queue | None = None,
    tries: int = 5,
    kept: cdk.Duration = LONGEST,
) -> sqs.Queue:
    """Return an encrypted queue, reachable over TLS only."""
    return sqs.Queue(
        scope,
        id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=kept,
        visibility_timeout=visible_again_after,
        dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=tries)
        if dead_letters
        else None,
    )


def let_bucket_send(queue: sqs.Queue, bucket_arn: str) -> None:
    """Let a bucket of this account notify the queue; the ARN of a bucket does not name its account."""
    account = {"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
    _let_send(queue, "s3.amazonaws.com", [bucket_arn], account)


def let_rules_send(queue: sqs.Queue, rules: Sequence[str]) -> None:
    """Let these EventBridge rules send to the queue. EventBridge sends no aws:SourceAccount."""
    _let_send(queue, "events.amazonaws.com", rules, {})


def _let_send(queue: sqs.Queue, service: str, sources: Sequence[str], more: Mapping[str, object]) -> None:
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal(service)],
            actions=["sqs:SendMessage"],
            resources=[queue.queue_arn],
            conditions={"ArnEquals": {"aws:SourceArn": list(sources)}, **more},
        )
    )


class Undelivered(Construct):
    """Events that could not be delivered, and asynchronous calls whose attempts all failed."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.queue = encrypted_queue(self, "Queue")
        self._rules: list[str] = []

    def take_from(self, rule_arn: str) -> None:
        """Let EventBridge send undelivered events of that rule here."""
        if not self._rules:
            # One statement for all rules, including later ones.
            let_rules_send(self.queue, cdk.Lazy.list(_Rules(self._rules)))
        self._rules.append(rule_arn)


@jsii.implements(cdk.IStableListProducer)
class _Rules:
    def __init__(self, arns: list[str]) -> None:
        self._arns = arns

    def produce(self) -> list[str]:
        return self._arns
