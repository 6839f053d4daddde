"""The bus of a central account, which gets the events and alarms of this stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.events.dead_letters import Undelivered
from infra.events.event_rule import EventRule
from infra.events.findings_bus import SOURCE, FindingsBus
from infra.roles import role_of

ALARMS = "aws.cloudwatch"


def central_statement(bus: str, account: str, partition: str) -> dict[str, Any]:
    """Return the statement that lets the role of one account put events on the central bus."""
    return {
        "Sid": f"smdebugOf{account}",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
        "Action": "events:PutEvents",
        "Resource": bus,
    }


class CentralBus(Construct):
    """Rules that send every event of the debugger, and every change of its alarms, to another bus."""

    def __init__(
        self, scope: Construct, id: str, *, arn: str, bus: FindingsBus, undelivered: Undelivered
    ) -> None:
        super().__init__(scope, id)
        stack = cdk.Stack.of(self)
        # EventBridge sends to a bus as a role; the bus of another account lets in this account.
        self._role = role_of(self, "events", "Sends events and alarms to the central account")
        self._role.add_to_policy(iam.PolicyStatement(actions=["events:PutEvents"], resources=[arn]))
        self._arn, self._undelivered = arn, undelivered
        self._send("Findings", "Events for the central account", {"source": [SOURCE]}, bus.name)
        alarms = {
            "source": [ALARMS],
            "detail-type": ["CloudWatch Alarm State Change"],
            "detail": {"alarmName": [{"prefix": f"{stack.stack_name}-"}]},
        }
        self._send("Alarms", "Alarms for the central account", alarms, None)
        self.statement = stack.to_json_string(central_statement(arn, cdk.Aws.ACCOUNT_ID, cdk.Aws.PARTITION))
        """What the policy of the central bus has to say."""

    def _send(self, id: str, does: str, pattern: Mapping[str, Any], bus: str | None) -> None:
        EventRule(
            self,
            id,
            does=does,
            undelivered=self._undelivered,
            target=self._arn,
            role=self._role,
            pattern=pattern,
            bus=bus,
        )
