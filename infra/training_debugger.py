"""The whole debugger as one construct, for the stack here and for stacks of others."""

from __future__ import annotations

import hashlib
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra import names
from infra.alarms import Alarms
from infra.alerts import Alerts
from infra.arrivals_queue import ArrivalsQueue
from infra.core_layer import CoreLayer
from infra.custom_rules import CustomRules
from infra.dead_letters import Undelivered
from infra.evaluation_workflow import EvaluationWorkflow
from infra.event_rule import EventRule
from infra.findings_bus import FOUND, RUN, FindingsBus
from infra.outputs import Outputs
from infra.python_function import PythonFunction, Shared
from infra.run_bucket import RunBucket
from infra.settings import Settings
from infra.step_table import StepTable
from infra.training_jobs import let_stop_jobs
from infra.watch_schedules import WatchSchedules

QUICK = 60  # seconds that a function has which looks at notes, not at tensors
EVALUATION = 120
REPORT = 300


class TrainingDebugger(Construct):
    """A bucket that trainings save to, and everything that looks at what they save.

    `TrainingDebugger(stack, "Debugger", settings=Settings(alert_emails=("me@example.org",)))`
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings | None = None) -> None:
        super().__init__(scope, id)
        settings = settings or Settings()
        self.settings = settings
        unique = _unique(self)
        key = (
            kms.Key.from_key_arn(self, "Key", settings.encryption_key_arn)
            if settings.encryption_key_arn
            else None
        )

        # Where things are
        undelivered = Undelivered(self, "Undelivered")
        bucket = RunBucket(self, "Runs", settings=settings, key=key, unique=unique)
        table = StepTable(self, "StepIndex", settings=settings, key=key)
        arrivals = ArrivalsQueue(
            self, "Arrivals", bucket=bucket, undelivered=undelivered, handled_within=QUICK
        )
        bus = FindingsBus(self, "Findings", unique=unique, undelivered=undelivered)
        alerts = Alerts(self, "Alerts", settings=settings, key=key)
        schedules = WatchSchedules(self, "Watches", unique=unique)

        # Who does something
        layer = CoreLayer(
            self, "CoreLayer", architecture=settings.architecture, local=settings.local
        )
        shared = Shared(layer.version, undelivered.queue, settings, _environment(settings))

        def function(
            id: str, module: str, does: str, timeout: int = QUICK, **more: Any
        ) -> PythonFunction:
            handler = f"functions.handlers.{module}.handler"
            return PythonFunction(
                self, id, shared=shared, handler=handler, does=does, timeout=timeout, **more
            )

        looks_at_tensors = {
            "timeout": EVALUATION,
            "memory_mb": settings.memory_mb,
            "scratch_mb": settings.scratch_mb,
        }
        ingest = function("Ingest", "ingest", "Notes what has arrived, starts what is complete")
        evaluate = function(
            "Evaluate", "evaluate", "Evaluates the built-in rules", **looks_at_tensors
        )
        claim = function("Claim", "claim", "Prepares the evaluation of a custom rule", EVALUATION)
        commit = function(
            "Commit", "commit", "Checks and commits what a custom rule answered", EVALUATION
        )
        mark_published = function(
            "MarkPublished", "mark_published", "Empties the outbox of what is published"
        )
        finish_run = function(
            "FinishRun", "finish_run", "Gives every rule of a run its last status", EVALUATION
        )
        sweep = function(
            "Sweep",
            "sweep",
            "Finds the files that no notification told of",
            300,
            is_asynchronous=True,
        )
        watch = function(
            "Watch",
            "watch",
            "Notices that a run has fallen silent",
            is_asynchronous=True,
            name=schedules.function_name,
        )
        act = function(
            "Act", "act", "Does what a rule is to do when it finds something", is_asynchronous=True
        )
        notify = function(
            "Notify", "notify", "Words what people are told", is_asynchronous=True, memory_mb=256
        )
        write_report = function(
            "WriteReport",
            "write_report",
            "Writes the page that tells of a finished run",
            is_asynchronous=True,
            **{**looks_at_tensors, "timeout": REPORT},
        )
        custom = CustomRules(self, "CustomRules", shared=shared)
        workflow = EvaluationWorkflow(
            self,
            "Evaluation",
            settings=settings,
            unique=unique,
            evaluate=evaluate,
            claim=claim,
            custom_rules=custom.functions,
            commit=commit,
            mark_published=mark_published,
            finish_run=finish_run,
            bus=bus,
            arrivals=arrivals,
        )

        # What each may do
        arrivals.feed(ingest, batch_window=settings.batch_window_seconds)
        table.let_take_in(ingest)
        bucket.let_read(ingest)
        schedules.let_set_alarm_clocks(ingest)
        custom.let_know_rules(ingest)

        table.let_evaluate(evaluate)
        bucket.let_read_with_others(evaluate)
        bucket.let_keep_state(evaluate)
        bucket.let_write_evidence(evaluate)

        table.let_claim(claim)
        bucket.let_read(claim)
        custom.let_claim(claim, bucket=bucket, settings=settings, key=key)

        table.let_claim(commit)
        bucket.let_write_evidence(commit)

        table.let_mark_published(mark_published)
        table.let_look_after(finish_run)

        table.let_take_in_and_unlist(sweep)
        bucket.let_read(sweep)
        schedules.let_set_alarm_clocks(sweep)
        custom.let_know_rules(sweep)

        table.let_look_after(watch)
        schedules.let_set_alarm_clocks(watch)

        table.let_note_outcomes(act)
        bucket.let_control(act)
        let_stop_jobs(act)
        alerts.let_publish(act)
        alerts.let_know_who(act)

        alerts.let_publish(notify)
        table.let_note_what_was_sent(notify)

        table.let_read(write_report)
        bucket.let_read(write_report)
        bucket.let_write_report(write_report)

        for starter in (ingest, sweep, watch):
            workflow.let_start(starter)
        for leaver in (
            ingest,
            evaluate,
            commit,
            finish_run,
            sweep,
            watch,
            act,
        ):
            arrivals.let_leave_checks(leaver)

        # What wakes them besides the queues
        EventRule(
            self,
            "EveryFiveMinutes",
            does="Looks for notifications that S3 lost, in the runs that are being watched",
            undelivered=undelivered,
            target=sweep,
            every="rate(5 minutes)",
        )
        bus.when(
            "Act",
            does="Findings that ask for something to be done",
            detail_types=[FOUND],
            detail={"has_actions": [True]},
            target=act,
        )
        bus.when(
            "WriteReport",
            does="Runs whose last words are published",
            detail_types=[RUN],
            detail={"state": ["Finished"]},
            target=write_report,
        )
        alerts.tell(bus, notify, settings)
        alarms = Alarms(
            self,
            "Alarms",
            dead_letters={
                "Arrivals": arrivals.dead_letters,
                "Undelivered": undelivered.queue,
            },
            workflow=workflow,
        )
        alarms.tell(notify, undelivered)
        functions = [
            ingest,
            evaluate,
            claim,
            *custom.functions,
            commit,
            finish_run,
            sweep,
            watch,
            act,
            notify,
            write_report,
        ]
        dashboard = alarms.show({"arrivals": arrivals.queue}, functions)

        self.bucket_name = bucket.name
        self.table_name = table.name
        self.bus_name = bus.name
        self.bus_arn = bus.arn
        self.alerts_topic_arn = alerts.arn
        self.workflow_arn = workflow.arn
        self.outputs = Outputs(
            self,
            "Told",
            bucket=bucket.name,
            has_to_turn_on_events=not bucket.is_our_own,
            table=table.name,
            bus=bus.name,
            topic=alerts.arn,
            workflow=workflow.arn,
            dashboard=dashboard.dashboard_name,
            evaluation_log=evaluate.log_group.log_group_name,
            custom_rule_logs=[one.log_group.log_group_name for one in custom.functions],
        )


def _unique(construct: Construct) -> str:
    """Eight letters that tell this debugger from the others of the account."""
    told = f"{cdk.Stack.of(construct).stack_name}/{construct.node.path}"
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def _environment(settings: Settings) -> dict[str, str]:
    return {
        names.DEFAULT_RULES: ",".join(settings.default_rules),
        names.INDEX_RETENTION: str(settings.index_retention_days * 86_400),
        names.INCOMPLETE_STEP_TIMEOUT: str(settings.incomplete_step_timeout_seconds),
        names.STALL_TIMEOUT: str(settings.stall_timeout_seconds),
        names.SILENCE_TIMEOUT: str(settings.silence_timeout_seconds),
    }
