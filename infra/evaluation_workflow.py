"""The state machine that has the rules look at what is due, and publishes what they found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.acknowledgments import acknowledge, acknowledge_wildcards
from infra.arrivals_queue import ArrivalsQueue
from infra.findings_bus import FindingsBus
from infra.names import WORKFLOW
from infra.python_function import PythonFunction
from infra.settings import Settings, WorkflowType

DEFINITION = Path(__file__).parent / "workflow.asl.json"


class EvaluationWorkflow(Construct):
    """`workflow.asl.json`, with the names of what it calls."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        unique: str,
        evaluate: PythonFunction,
        claim: PythonFunction,
        custom_rules: Sequence[PythonFunction],
        commit: PythonFunction,
        mark_published: PythonFunction,
        finish_run: PythonFunction,
        bus: FindingsBus,
        arrivals: ArrivalsQueue,
    ) -> None:
        super().__init__(scope, id)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            ),
            description="Calls the rules, and alone may put events on the bus",
        )
        functions = [evaluate, claim, *custom_rules, commit, mark_published, finish_run]
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[one.arn for one in functions]
            )
        )
        arrivals.let_role_leave_checks(self.role)
        bus.let_only_this_publish(self.role)
        # Names that begin so share one resource policy, whose size is limited.
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/vendedlogs/states/smdebug-{unique}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.machine = sfn.StateMachine(
            self,
            "StateMachine",
            comment="Evaluates the rules of a run",
            state_machine_type=sfn.StateMachineType.EXPRESS
            if settings.workflow_type is WorkflowType.EXPRESS
            else sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(DEFINITION.read_text(encoding="utf-8")),
            definition_substitutions={
                "Evaluate": evaluate.arn,
                "Claim": claim.arn,
                "Commit": commit.arn,
                "FinishRun": finish_run.arn,
                "MarkPublished": mark_published.arn,
                "Bus": bus.name,
                "Reminders": arrivals.queue.queue_url,
            },
            role=self.role,
            # Failures only, and never what was passed: a claim's credentials are part of that.
            logs=sfn.LogOptions(
                destination=log_group, level=sfn.LogLevel.ERROR, include_execution_data=False
            ),
        )

        acknowledge_wildcards(
            self.role,
            ["*"],
            "Where its logs go can only be set up for all log groups of an account.",
        )
        acknowledge(
            self.machine,
            "SF1",
            "Events of every execution cost more than the execution: failures are logged.",
        )
        acknowledge(
            self.machine,
            "SF2",
            "Traces cost as much as evaluating: each event tells its times instead.",
        )

    @property
    def arn(self) -> str:
        return self.machine.state_machine_arn

    def let_start(self, function: PythonFunction) -> None:
        """Start the evaluation of a step."""
        function.may("states:StartExecution", on=[self.arn])
        function.knows(WORKFLOW, self.arn)
