"""The whole debugger as one construct, for the stack here and for stacks of others."""

from __future__ import annotations

import json

from constructs import Construct

from infra import names, tenants
from infra.alerting.alarms import Alarms, Watched
from infra.alerting.alarms_topic import AlarmsTopic
from infra.backtesting.backtests import Backtests
from infra.evaluation_workflow import EvaluationWorkflow
from infra.foundation import Foundation
from infra.functions import Functions
from infra.grants import grant
from infra.landing_zone.conventions import follow_conventions
from infra.landing_zone.keys import encrypt_all
from infra.landing_zone.network import put_into_vpc
from infra.outputs import Outputs
from infra.packaging.core_layer import CoreLayer
from infra.python_function import Shared
from infra.settings import Settings
from infra.triggers import add_triggers


class TrainingDebugger(Construct):
    """A bucket that trainings save to, and everything that evaluates what they save.

    `TrainingDebugger(stack, "Debugger", settings=Settings(alert_emails=("me@example.org",)))`
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings | None = None) -> None:
        super().__init__(scope, id)
        self.settings = settings = settings or Settings()
        foundation = Foundation(self, settings)
        functions = self._functions(foundation)
        workflow = EvaluationWorkflow(
            self,
            "Evaluation",
            settings=settings,
            name=foundation.name,
            functions=functions,
            bus=foundation.bus,
            arrivals=foundation.arrivals,
        )
        grant(functions, foundation, workflow, settings)
        add_triggers(self, functions, foundation)
        backtests = (
            Backtests(
                self,
                "Backtests",
                shared=self._shared,
                foundation=foundation,
                custom=functions.custom,
                report=functions.write_report,
            )
            if settings.backtests_at_once
            else None
        )
        dashboard = self._monitor(functions, foundation, workflow)

        self.bucket_name = foundation.bucket.name
        self.table_name = foundation.table.name
        self.bus_name = foundation.bus.name
        self.bus_arn = foundation.bus.arn
        self.alerts_topic_arn = foundation.alerts.arn
        self.workflow_arn = workflow.arn
        self.outputs = Outputs(
            self,
            "Outputs",
            foundation,
            functions,
            workflow=workflow.arn,
            dashboard=dashboard,
            alarms_topic=self.alarms_topic_arn,
            backtests=backtests,
        )
        put_into_vpc(self, settings)
        if foundation.key:
            encrypt_all(self, foundation.key)
        follow_conventions(self, settings)

    def _functions(self, foundation: Foundation) -> Functions:
        settings = self.settings
        layer = CoreLayer(
            self,
            "CoreLayer",
            architecture=settings.architecture,
            local=settings.local,
            name=foundation.name if settings.name_prefix else None,
        )
        self._shared = Shared(
            layer.version,
            foundation.undelivered.queue,
            settings,
            _environment(settings, foundation),
        )
        return Functions(self, shared=self._shared, schedules=foundation.schedules)

    def _monitor(self, functions: Functions, foundation: Foundation, workflow: EvaluationWorkflow) -> str:
        """Add alarms and a dashboard; return the name of the dashboard."""
        topic = AlarmsTopic(self, "AlarmsTopic", settings=self.settings)
        self.alarms_topic_arn = topic.arn
        watched = Watched(
            arrivals=foundation.arrivals.queue,
            dead_letters=[foundation.arrivals.dead_letters, foundation.undelivered.queue],
            workflow=workflow,
            ingest=functions.ingest,
            evaluate=functions.evaluate,
            deployment=foundation.deployment,
        )
        alarms = Alarms(self, "Alarms", watched=watched, topic=topic)
        return alarms.show(
            functions.monitored, foundation.name if self.settings.name_prefix else None
        ).dashboard_name


def _environment(settings: Settings, foundation: Foundation) -> dict[str, str]:
    """The settings that every trusted function gets; the handlers have no defaults of their own."""
    runs_of = {
        "prefixes": tenants.prefixes_of(settings.tenants, foundation.bucket.name),
        # Without tenants, whoever deploys has named these buckets for all runs.
        "shared": [] if settings.tenants else [f"{bucket}/" for bucket in settings.other_buckets],
    }
    return {
        names.METRICS_OF: foundation.deployment,
        names.DEFAULT_RULES: ",".join(settings.default_rules),
        names.TENANTS: json.dumps(runs_of),
        names.CUSTOM_RULES_PER_RUN: str(settings.custom_rules_per_run),
        names.CUSTOM_GB_SECONDS: str(settings.custom_gb_seconds),
        names.CUSTOM_MEMORY: str(settings.memory_mb),
        names.INDEX_RETENTION: str(settings.index_retention_days * 86_400),
        names.INCOMPLETE_STEP_TIMEOUT: str(settings.incomplete_step_timeout_seconds),
        names.STALL_TIMEOUT: str(settings.stall_timeout_seconds),
        names.SILENCE_TIMEOUT: str(settings.silence_timeout_seconds),
    }
