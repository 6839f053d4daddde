"""The outputs of a deployed debugger, for a person or `smdebug.service`."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from infra.backtesting.backtests import Backtests
from infra.foundation import Foundation
from infra.functions import Functions

CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
    "aws-eusc": "console.amazonaws-eusc.eu",
}
"""The host of the console in each partition, behind the name of the region."""


class Outputs(Construct):
    """The outputs of the stack that contains the debugger."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        foundation: Foundation,
        functions: Functions,
        *,
        workflow: str,
        dashboard: str,
        alarms_topic: str,
        backtests: Backtests | None = None,
    ) -> None:
        super().__init__(scope, id)
        bucket = foundation.bucket
        consoles = cdk.CfnMapping(
            self, "Consoles", mapping={name: {"host": host} for name, host in CONSOLES.items()}
        )
        host = consoles.find_in_map(cdk.Aws.PARTITION, "host")
        console = f"https://{cdk.Aws.REGION}.{host}/cloudwatch/home?region={cdk.Aws.REGION}"
        evaluation_log = functions.evaluate.log_group.log_group_name
        custom_logs = [custom.log_group.log_group_name for custom in functions.custom.functions]
        self._add("Bucket", bucket.name, "Save to s3://<this>/<run>: the rules evaluate each step")
        self._add("StepIndex", foundation.table.name, "The table that smdebug.service reads")
        self._add("FindingsBus", foundation.bus.name, "Add your own EventBridge rules to this bus")
        self._add("AlertsTopic", foundation.alerts.arn, "Subscribe here to get the alerts")
        self._add("AlarmsTopic", alarms_topic, "Subscribe here to get the alarms of the stack itself")
        self._add("Workflow", workflow, "Evaluates the rules")
        self._add("Dashboard", f"{console}#dashboards:name={dashboard}", "Backlog, failures and findings")
        self._add("EvaluationLog", evaluation_log, "The log of the built-in rules")
        self._add("CustomRuleLogs", ",".join(custom_logs), "The logs of custom rules")
        if foundation.bus.statement:
            self._add("EventBusStatement", foundation.bus.statement, "Add this to the policy of your bus")
        if foundation.central is not None:
            self._add(
                "CentralBusStatement",
                foundation.central.statement,
                "Add this to the policy of the bus in the central account",
            )
        if foundation.stops.urls:
            what = "What your clusters read: python -m smdebug.service.stopping"
            self._add("StopQueues", foundation.stops.listed(), what)
        if foundation.exports.urls:
            self._add("ExportQueues", foundation.exports.listed(), "For smdebug export TOOL --queue")
        if backtests is not None:
            self._add("Backtests", backtests.arn, "The state machine of `smdebug backtest --deployed`")
            self._add(
                "BacktestCapacity", backtests.capacity, "How many calls judge at once, and their memory"
            )
        if not bucket.is_our_own:
            self._add(
                "TurnOnEvents",
                _turn_on_events(bucket.name),
                "Run this once: it turns events on and keeps the bucket's existing notifications",
            )

    def use_plain_names(self) -> None:
        """Name the outputs without path and digest, for a stack that contains nothing else."""
        for element in self.node.children:
            assert isinstance(element, cdk.CfnOutput | cdk.CfnMapping)
            element.override_logical_id(element.node.id)

    def _add(self, name: str, value: str, description: str) -> None:
        cdk.CfnOutput(self, name, value=value, description=description)


def _turn_on_events(bucket: str) -> str:
    api = "aws s3api"
    add = "jq -s '(.[0] // {}) + {EventBridgeConfiguration: {}}'"
    read = f"{api} get-bucket-notification-configuration --bucket {bucket}"
    write = (
        f"{api} put-bucket-notification-configuration --bucket {bucket} "
        "--skip-destination-validation --notification-configuration"
    )
    return f'{write} "$({read} | {add})"'
