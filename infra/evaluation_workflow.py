"""The state machine that evaluates due steps and publishes the findings."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.acknowledgments import acknowledge, acknowledge_wildcards
from infra.events.arrivals_queue import ArrivalsQueue
from infra.events.findings_bus import FindingsBus
from infra.functions import Functions
from infra.log_retentions import LOG_RETENTIONS
from infra.names import WORKFLOW
from infra.python_function import PythonFunction
from infra.roles import role_of
from infra.settings import Settings, WorkflowType

DEFINITION = Path(__file__).parent / "workflow.asl.json"


def definition(file: Path, state: str, at_once: int) -> str:
    """Return the state machine of the file, whose Map of that name runs at most so many at once."""
    machine = json.loads(file.read_text(encoding="utf-8"))
    machine["States"][state]["MaxConcurrency"] = at_once
    # The file names the integrations of the commercial regions, as its documentation and its readers do.
    return json.dumps(machine, indent=2).replace('"arn:aws:states:::', '"arn:${Partition}:states:::')


class EvaluationWorkflow(Construct):
    """`workflow.asl.json`, with the names of the functions that it calls."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        name: str,
        functions: Functions,
        bus: FindingsBus,
        arrivals: ArrivalsQueue,
    ) -> None:
        super().__init__(scope, id)
        self.role = role_of(self, "states", "Calls the rules; the only role that may put events on the bus")
        called = [
            functions.evaluate,
            functions.claim,
            *functions.custom.functions,
            functions.commit,
            functions.mark_published,
            functions.finish_run,
        ]
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[function.arn for function in called]
            )
        )
        arrivals.let_role_send_reminders(self.role)
        bus.let_only_this_publish(self.role)
        # Names with this prefix share one resource policy; the size of each is limited.
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/vendedlogs/states/{name}",
            retention=logs.RetentionDays[LOG_RETENTIONS[settings.log_retention_days]],
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.machine = sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=name if settings.name_prefix else None,
            comment="Evaluates the rules of a run",
            state_machine_type=sfn.StateMachineType.EXPRESS
            if settings.workflow_type is WorkflowType.EXPRESS
            else sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(
                definition(DEFINITION, "Groups", settings.groups_at_once)
            ),
            definition_substitutions={
                "Partition": cdk.Aws.PARTITION,
                "Evaluate": functions.evaluate.arn,
                "Claim": functions.claim.arn,
                "Commit": functions.commit.arn,
                "FinishRun": functions.finish_run.arn,
                "MarkPublished": functions.mark_published.arn,
                "Bus": bus.name,
                "Reminders": arrivals.queue.queue_url,
            },
            role=self.role,
            # Failures only, and never the data passed: that includes a claim's credentials.
            logs=sfn.LogOptions(
                destination=log_group, level=sfn.LogLevel.ERROR, include_execution_data=False
            ),
        )

        acknowledge_wildcards(
            self.role,
            ["*"],
            "Log delivery can only be configured for all log groups of an account.",
        )
        acknowledge(
            self.machine,
            "SF1",
            "Logging every execution costs more than the execution, so only failures are logged.",
        )
        acknowledge(
            self.machine,
            "SF2",
            "Traces cost as much as the evaluation; each event has its times instead.",
        )

    @property
    def arn(self) -> str:
        return self.machine.state_machine_arn

    def let_start(self, function: PythonFunction) -> None:
        """Start the evaluation of a step."""
        function.may("states:StartExecution", on=[self.arn])
        function.knows(WORKFLOW, self.arn)
