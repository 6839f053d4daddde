"""The bus on which findings are published, for the debugger and for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    """A bus that only the workflow may put events on, so that none is forged."""

    def __init__(self, scope: Construct, id: str, *, name: str, undelivered: Undelivered) -> None:
        super().__init__(scope, id)
        self._undelivered = undelivered
        self.name = name
        self._bus = events.EventBus(
            self,
            "Bus",
            event_bus_name=self.name,
            description="Findings of the rules that watch trainings",
        )
        self.arn = self._bus.event_bus_arn

    def let_only_this_publish(self, role: iam.Role) -> None:
        """Let the workflow put events, and deny it to all others, whatever their own policies allow."""
        role.add_to_policy(iam.PolicyStatement(actions=["events:PutEvents"], resources=[self.arn]))
        self._bus.add_to_resource_policy(
            iam.PolicyStatement(
                sid="OnlyTheWorkflowPublishes",
                effect=iam.Effect.DENY,
                principals=[iam.StarPrincipal()],
                actions=["events:PutEvents"],
                resources=[self.arn],
                conditions={"ArnNotEquals": {"aws:PrincipalArn": role.role_arn}},
            )
        )

    def when(
        self,
        id: str,
        *,
        does: str,
        detail_types: list[str],
        target: PythonFunction,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Call the target whenever such an event is published."""
        EventRule(
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
