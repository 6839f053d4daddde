"""What the functions work on: bucket, table, queue, bus, alerts and schedules."""

from __future__ import annotations

import hashlib

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.alerting.alerts import Alerts
from infra.events.arrivals_queue import ArrivalsQueue
from infra.events.dead_letters import Undelivered
from infra.events.findings_bus import FindingsBus
from infra.functions import QUICK
from infra.settings import Settings
from infra.storage.run_bucket import RunBucket
from infra.storage.step_table import StepTable
from infra.watch_schedules import WatchSchedules


class Foundation:
    """The resources of a debugger besides its functions, below one construct."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        self.name = f"{settings.name_prefix}smdebug-{_unique(scope)}"
        """The beginning of the names that are chosen here; the others come from CloudFormation."""
        self.deployment = self.name  # the dimension of its metrics
        self.key = (
            kms.Key.from_key_arn(scope, "Key", settings.encryption_key_arn)
            if settings.encryption_key_arn
            else None
        )
        self.undelivered = Undelivered(scope, "Undelivered")
        self.bucket = RunBucket(scope, "Runs", settings=settings, key=self.key, name=self.name)
        self.table = StepTable(scope, "StepIndex", settings=settings, key=self.key)
        self.arrivals = ArrivalsQueue(
            scope,
            "Arrivals",
            bucket=self.bucket,
            undelivered=self.undelivered,
            handled_within=QUICK,
        )
        self.bus = FindingsBus(scope, "Findings", name=self.name, undelivered=self.undelivered)
        self.alerts = Alerts(scope, "Alerts", settings=settings, key=self.key)
        self.schedules = WatchSchedules(scope, "Watches", name=self.name)


def _unique(construct: Construct) -> str:
    """Eight letters that distinguish this debugger from others in the account."""
    path = f"{cdk.Stack.of(construct).stack_name}/{construct.node.path}"
    return hashlib.sha256(path.encode()).hexdigest()[:8]
