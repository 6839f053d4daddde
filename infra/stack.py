"""The stack that `cdk deploy` makes: one debugger, and what a person has to know about it."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from infra.settings import Settings
from infra.training_debugger import TrainingDebugger


class DebuggerStack(cdk.Stack):
    """A training debugger in an account of its user."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, **more: Any) -> None:
        super().__init__(
            scope, id, description="smdebug: watches trainings by the tensors they save", **more
        )
        self.debugger = TrainingDebugger(self, "Debugger", settings=settings)
        self._tell()

    def _tell(self) -> None:
        debugger = self.debugger
        dashboard = f"https://{self.region}.console.aws.amazon.com/cloudwatch/home#dashboards:name={debugger.dashboard_name}"
        outputs = {
            "Bucket": (debugger.bucket_name, "Save to s3://<this>/<run>, and the rules look"),
            "StepIndex": (debugger.table_name, "The table that smdebug.service reads"),
            "FindingsBus": (debugger.bus_name, "Make EventBridge rules of your own here"),
            "AlertsTopic": (debugger.alerts_topic_arn, "Subscribe here to be told"),
            "Workflow": (debugger.workflow_arn, "Evaluates the rules"),
            "Dashboard": (dashboard, "Does it keep up?"),
            "EvaluationLog": (debugger.evaluation_log, "What the built-in rules logged"),
            "CustomRuleLog": (debugger.custom_rule_log, "What rules loaded from S3 logged"),
        }
        if debugger.settings.bucket:
            turn_on = (
                f"aws s3api put-bucket-notification-configuration --bucket {debugger.bucket_name}"
            )
            outputs["TurnOnEvents"] = (
                f"See docs/deploy.md: `{turn_on}` replaces all, so it has to be given what is there, too",
                "Needed once for an existing bucket",
            )
        for name, (value, meaning) in outputs.items():
            cdk.CfnOutput(self, name, value=value, description=meaning)
