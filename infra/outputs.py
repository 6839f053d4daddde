"""What a person, or `smdebug.service`, has to know of a deployed debugger."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from constructs import Construct


class Outputs(Construct):
    """The outputs of the stack that the debugger is in."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        bucket: str,
        has_to_turn_on_events: bool,
        table: str,
        bus: str,
        topic: str,
        workflow: str,
        dashboard: str,
        evaluation_log: str,
        custom_rule_logs: Sequence[str],
    ) -> None:
        super().__init__(scope, id)
        console = f"https://{cdk.Aws.REGION}.console.aws.amazon.com/cloudwatch/home"
        self._tell("Bucket", bucket, "Save to s3://<this>/<run>, and the rules look")
        self._tell("StepIndex", table, "The table that smdebug.service reads")
        self._tell("FindingsBus", bus, "Make EventBridge rules of your own on this bus")
        self._tell("AlertsTopic", topic, "Subscribe here to be told")
        self._tell("Workflow", workflow, "Evaluates the rules")
        self._tell("Dashboard", f"{console}#dashboards:name={dashboard}", "Does it keep up?")
        self._tell("EvaluationLog", evaluation_log, "What the built-in rules logged")
        self._tell("CustomRuleLogs", ",".join(custom_rule_logs), "What custom rules logged")
        if has_to_turn_on_events:
            self._tell(
                "TurnOnEvents",
                _turn_on(bucket),
                "Run this once: it keeps what the bucket notifies by now",
            )

    def named_plainly(self) -> None:
        """Without path and digest: in a stack that holds nothing else, nothing else has these names."""
        for output in self.node.children:
            assert isinstance(output, cdk.CfnOutput)
            output.override_logical_id(output.node.id)

    def _tell(self, name: str, value: str, meaning: str) -> None:
        cdk.CfnOutput(self, name, value=value, description=meaning)


def _turn_on(bucket: str) -> str:
    api = "aws s3api"
    add = "jq -s '(.[0] // {}) + {EventBridgeConfiguration: {}}'"
    read = f"{api} get-bucket-notification-configuration --bucket {bucket}"
    write = f"{api} put-bucket-notification-configuration --bucket {bucket} --notification-configuration"
    return f'{write} "$({read} | {add})"'
