"""An EventBridge rule with one target, and a queue for undelivered events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.events.dead_letters import Undelivered
from infra.python_function import PythonFunction


class EventRule(Construct):
    """Sends matching events, or a schedule's, to a function, a queue, or as a role to another bus."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        does: str,
        undelivered: Undelivered,
        target: PythonFunction | str,
        pattern: Mapping[str, Any] | None = None,
        every: str | None = None,
        bus: str | None = None,
        role: iam.Role | None = None,
    ) -> None:
        super().__init__(scope, id)
        arn = target.arn if isinstance(target, PythonFunction) else target
        rule = events.CfnRule(
            self,
            "Rule",
            description=does,
            event_bus_name=bus,
            event_pattern=dict(pattern) if pattern else None,
            schedule_expression=every,
            targets=[
                events.CfnRule.TargetProperty(
                    id="Target",
                    arn=arn,
                    role_arn=role.role_arn if role else None,
                    dead_letter_config=events.CfnRule.DeadLetterConfigProperty(
                        arn=undelivered.queue.queue_arn
                    ),
                )
            ],
        )
        self.arn = rule.attr_arn
        undelivered.take_from(self.arn)
        if isinstance(target, PythonFunction):
            lambda_.CfnPermission(
                self,
                "Permission",
                action="lambda:InvokeFunction",
                function_name=arn,
                principal="events.amazonaws.com",
                # EventBridge sends no aws:SourceAccount: with that condition it could call nothing.
                source_arn=self.arn,
            )
