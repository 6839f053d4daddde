"""The bus on which findings are published, for the debugger and for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.events.dead_letters import Undelivered
from infra.events.event_rule import EventRule
from infra.python_function import PythonFunction

SOURCE = "smdebug"
FOUND = "Rule Evaluation Condition Met"
RESOLVED = "Rule Issue Resolved"
STATUS = "Rule Evaluation Status Change"
RUN = "Run State Change"
ACTION = "Rule Action Outcome"
ALL_EVENTS = (FOUND, RESOLVED, STATUS, RUN, ACTION)


class FindingsBus(Construct):
    """A bus that only the workflow may put events on, so that none is forged; or an existing one.

    The policy of an existing bus is not changed: `statement` is what it has to say for the same.
    """

    def __init__(
        self, scope: Construct, id: str, *, name: str, undelivered: Undelivered, existing: str | None = None
    ) -> None:
        super().__init__(scope, id)
        self._undelivered = undelivered
        self.name = existing or name
        self._bus: events.IEventBus = (
            events.EventBus.from_event_bus_name(self, "Bus", existing)
            if existing
            else events.EventBus(
                self,
                "Bus",
                event_bus_name=self.name,
                description="Findings of the rules that watch trainings",
            )
        )
        self.arn = self._bus.event_bus_arn
        self.statement = ""
        """For the policy of an existing bus; empty if the bus is the stack's own."""

    def let_only_this_publish(self, role: iam.Role) -> None:
        """Let the workflow put events, and deny it to all others, whatever their own policies allow."""
        role.add_to_policy(iam.PolicyStatement(actions=["events:PutEvents"], resources=[self.arn]))
        only_this = {"ArnNotEquals": {"aws:PrincipalArn": role.role_arn}}
        if isinstance(self._bus, events.EventBus):
            self._bus.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="OnlyTheWorkflowPublishes",
                    effect=iam.Effect.DENY,
                    principals=[iam.StarPrincipal()],
                    actions=["events:PutEvents"],
                    resources=[self.arn],
                    conditions=only_this,
                )
            )
            return
        self.statement = cdk.Stack.of(self).to_json_string(
            {
                "Sid": "OnlyTheWorkflowPublishesFindings",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "events:PutEvents",
                "Resource": self.arn,
                # Others go on to put their own events on this bus.
                "Condition": {**only_this, "ForAnyValue:StringEquals": {"events:source": SOURCE}},
            }
        )

    def when(
        self,
        id: str,
        *,
        does: str,
        detail_types: list[str],
        target: PythonFunction | str,
        detail: Mapping[str, Any] | None = None,
    ) -> str:
        """Call the function, or send to what has this ARN, when such an event is published.

        Returns the ARN of the rule, which the target's policy has to let in if it is no function.
        """
        rule = EventRule(
            self,
            id,
            does=does,
            undelivered=self._undelivered,
            target=target,
            bus=self._bus.event_bus_name,
            pattern={
                "source": [SOURCE],
                "detail-type": detail_types,
                **({"detail": detail} if detail else {}),
            },
        )
        return rule.arn
