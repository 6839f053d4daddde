"""One-shot schedules that check a run: whether it still saves, has been evaluated, and has ended."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.names import SCHEDULE_GROUP, SCHEDULE_ROLE, WATCH_ARN
from infra.python_function import PythonFunction
from infra.roles import role_of


class WatchSchedules(Construct):
    """A group of EventBridge schedules, each of which calls `watch` once and is deleted."""

    def __init__(self, scope: Construct, id: str, *, name: str) -> None:
        super().__init__(scope, id)
        self._group = name
        group = scheduler.CfnScheduleGroup(self, "Group", name=self._group)
        # Known in advance: the function needs its own name to reschedule itself.
        head, _, digest = name.rpartition("-")
        self.function_name = f"{head}-watch-{digest}"
        here = f"{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}"
        self._arn = f"arn:{cdk.Aws.PARTITION}:lambda:{here}:function:{self.function_name}"
        self._schedules = f"arn:{cdk.Aws.PARTITION}:scheduler:{here}:schedule/{self._group}/run-*"
        self._role = role_of(
            self,
            "scheduler",
            "Calls the function that checks runs",
            only={"ArnEquals": {"aws:SourceArn": group.attr_arn}},
        )
        self._role.add_to_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self._arn])
        )

    def let_schedule_checks(self, function: PythonFunction) -> None:
        """Create or postpone the check of a run."""
        function.may(
            "scheduler:CreateSchedule",
            "scheduler:UpdateSchedule",
            on=[self._schedules],
            because="Every watched run has schedules named after it; the group belongs to the stack.",
        )
        function.may(
            "iam:PassRole",
            on=[self._role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
        )
        function.knows(SCHEDULE_GROUP, self._group)
        function.knows(SCHEDULE_ROLE, self._role.role_arn)
        function.knows(WATCH_ARN, self._arn)
