"""The topic of the alarms, to which CloudWatch publishes without any function of the debugger."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alerting.subscriptions import subscribe
from infra.settings import Settings


class AlarmsTopic(Construct):
    """Sends alarms to the recipients of the alerts.

    It is a topic of its own: CloudWatch may not use AWS's key for SNS, with which the topic of the alerts is
    encrypted, but the key of `encryption_key_arn`. An alarm contains names of this stack's resources and a
    number, and nothing of a run.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self._topic = sns.Topic(self, "Topic", display_name="smdebug alarms", enforce_ssl=True)
        stack = cdk.Stack.of(self)
        here = f"{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}"
        alarms = f"arn:{cdk.Aws.PARTITION}:cloudwatch:{here}:alarm:{stack.stack_name}-*"
        self._topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self._topic.topic_arn],
                conditions={
                    "ArnLike": {"aws:SourceArn": alarms},
                    "StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID},
                },
            )
        )
        subscribe(self, self._topic, settings)

    @property
    def arn(self) -> str:
        return self._topic.topic_arn

    @property
    def action(self) -> cloudwatch.IAlarmAction:
        return actions.SnsAction(self._topic)
