"""Backtests: the state machine that judges the runs of a manifest, its functions, and the nightly one."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import names
from infra.acknowledgments import acknowledge, acknowledge_wildcards
from infra.backtesting.share import slows_live_runs
from infra.custom_rules import NARROWED, CustomRules
from infra.evaluation_workflow import definition
from infra.events.event_rule import EventRule
from infra.foundation import Foundation
from infra.log_retentions import LOG_RETENTIONS
from infra.python_function import PythonFunction, Shared
from infra.roles import allow, role_of
from infra.storage.run_bucket import ANY_BACKTEST, MANIFEST, PLAN, RESULTS, ROWS

DEFINITION = Path(__file__).parent / "backtests.asl.json"
JUDGING = 285
"""Seconds: the last run of a chunk begins within 70 and takes up to 200, and a child has 300."""
QUICK = 60
_MEMORY_FOR_BUNDLES = 1024
"""Megabytes: a bundle is in memory while it is written, with all of its files."""
NIGHT = "cron(30 2 * * ? *)"
_CHILDREN = "The children of a backtest and their executions have the name of the state machine."


class Backtests(Construct):
    """What a stack with `backtests_at_once` has besides."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        shared: Shared,
        foundation: Foundation,
        custom: CustomRules,
        report: PythonFunction,
    ) -> None:
        """`report` is the function that reads each run at its end, and bundles it then."""
        super().__init__(scope, id)
        self._shared = shared
        self._foundation = foundation
        settings = shared.settings
        self.judge = self._function("JudgeRuns", "judge_runs", "Judges the runs of a backtest", JUDGING)
        self.prepare = self._function(
            "PrepareBacktest", "prepare_backtest", "Prepares a backtest of a custom rule", QUICK
        )
        self.sandbox = custom.backtest_sandbox(shared)
        self.keep = self._function(
            "KeepVerdicts", "keep_verdicts", "Checks the verdicts of a custom rule", QUICK
        )
        self._grant(report)
        self.machine = self._state_machine()
        self.arn = self._machine_arn
        capacity = {
            "at_once": settings.backtests_at_once,
            "memory_mb": settings.memory_mb,
            "bundles": self._keeps_bundles,
            "slows_live_runs": slows_live_runs(settings.backtests_at_once, settings.account_concurrency),
        }
        self.capacity = json.dumps(capacity, sort_keys=True)
        self.functions = [self.judge, self.prepare, self.sandbox, self.keep]
        if settings.nightly_backtest:
            self.functions.append(self._nightly())

    def _function(
        self, id: str, module: str, does: str, timeout: int, *, is_asynchronous: bool = False
    ) -> PythonFunction:
        settings = self._shared.settings
        function = PythonFunction(
            self,
            id,
            shared=self._shared,
            handler=f"functions.handlers.{module}.handler",
            does=does,
            timeout=timeout,
            memory_mb=settings.memory_mb if timeout == JUDGING else 512,
            scratch_mb=settings.scratch_mb if timeout == JUDGING else 512,
            is_asynchronous=is_asynchronous,
        )
        function.knows(names.BACKTEST_MEMORY, str(settings.memory_mb))
        return function

    @property
    def _keeps_bundles(self) -> bool:
        settings = self._shared.settings
        return settings.bundle_retention_days > 0 and settings.memory_mb >= _MEMORY_FOR_BUNDLES

    def _grant(self, report: PythonFunction) -> None:
        bucket, table = self._foundation.bucket, self._foundation.table
        bucket.let_read(self.judge)
        bucket.let_use_backtests(self.judge, writes=[ROWS])
        bucket.let_use_backtests(self.prepare, reads=[PLAN])
        bucket.let_use_backtests(self.keep, reads=[PLAN], writes=[ROWS])
        if self._keeps_bundles:
            bucket.let_keep_bundles(self.judge)
            bucket.let_keep_bundles(report)
            bucket.let_know_bundles(self.prepare)
        for function in (self.judge, self.prepare, self.keep):
            table.let_count_spending(function)
        role = iam.Role(
            self,
            "ReadingRole",
            assumed_by=iam.ArnPrincipal(self.prepare.role.role_arn),
            max_session_duration=cdk.Duration.hours(1),
            description="The upper limit of what rules in a backtest may read; each run narrows it",
        )
        allow(role, "s3:GetObject", on=[f"{bucket.arn}/*"], because=NARROWED)
        allow(role, "s3:ListBucket", on=[bucket.arn])
        self.prepare.may("sts:AssumeRole", on=[role.role_arn])
        self.prepare.knows(names.BACKTEST_ROLE, role.role_arn)

    def _state_machine(self) -> sfn.StateMachine:
        bucket = self._foundation.bucket
        name = f"{self._foundation.name}-backtests"
        here = f"{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}"
        # Known in advance: its role allows it to start its own children.
        self._machine_arn = f"arn:{cdk.Aws.PARTITION}:states:{here}:stateMachine:{name}"
        executions = f"arn:{cdk.Aws.PARTITION}:states:{here}:execution:{name}"
        role = role_of(self, "states", "Calls the functions of a backtest, for each chunk of its manifest")
        called = [self.judge, self.prepare, self.sandbox, self.keep]
        allow(role, "lambda:InvokeFunction", on=[function.arn for function in called])
        allow(role, "states:StartExecution", on=[self._machine_arn])
        allow(
            role,
            "states:DescribeExecution",
            "states:StopExecution",
            on=[f"{executions}/*", f"{executions}:*"],
            because=_CHILDREN,
        )
        allow(role, "s3:GetObject", on=bucket.of_backtests(MANIFEST, RESULTS), because=ANY_BACKTEST)
        allow(
            role,
            "s3:PutObject",
            "s3:ListMultipartUploadParts",
            "s3:AbortMultipartUpload",
            on=bucket.of_backtests(RESULTS),
            because=ANY_BACKTEST,
        )
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/vendedlogs/states/{name}",
            retention=logs.RetentionDays[LOG_RETENTIONS[self._shared.settings.log_retention_days]],
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        machine = sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=name,
            comment="Judges the runs of a backtest",
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(
                definition(DEFINITION, "Chunks", self._shared.settings.backtests_at_once)
            ),
            definition_substitutions={
                "Partition": cdk.Aws.PARTITION,
                "Bucket": bucket.name,
                "JudgeRuns": self.judge.arn,
                "PrepareBacktest": self.prepare.arn,
                "Sandbox": self.sandbox.arn,
                "KeepVerdicts": self.keep.arn,
            },
            role=role,
            logs=sfn.LogOptions(
                destination=log_group, level=sfn.LogLevel.ERROR, include_execution_data=False
            ),
        )
        acknowledge_wildcards(
            role, ["*"], "Log delivery can only be configured for all log groups of an account."
        )
        acknowledge(machine, "SF1", "Only failures are logged: the data has credentials for single runs.")
        acknowledge(machine, "SF2", "A backtest has its verdicts, with the time of each run.")
        return machine

    def _nightly(self) -> PythonFunction:
        """The function that plans a backtest of yesterday's runs, and its schedule."""
        settings, bucket = self._shared.settings, self._foundation.bucket
        plan = self._function(
            "PlanNightly", "plan_nightly", "Plans the nightly backtest", QUICK * 5, is_asynchronous=True
        )
        bucket.let_use_backtests(plan, reads=[MANIFEST], writes=[PLAN, MANIFEST])
        bucket.let_count_steps(plan)
        self._foundation.table.let_find_runs(plan)
        plan.may("states:StartExecution", on=[self._machine_arn])
        plan.knows(names.BACKTESTS, self._machine_arn)
        plan.knows(names.BACKTESTS_AT_ONCE, str(settings.backtests_at_once))
        plan.knows(names.NIGHTLY_BUDGET, str(settings.nightly_budget))
        EventRule(
            self,
            "EveryNight",
            does="Judges yesterday's runs by today's default rules",
            undelivered=self._foundation.undelivered,
            target=plan,
            every=NIGHT,
        )
        return plan
