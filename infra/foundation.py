"""What the functions work on: bucket, table, queue, bus, alerts and schedules."""

from __future__ import annotations

import hashlib
from functools import partial

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.alerting.alerts import Alerts
from infra.events.arrivals_queue import ArrivalsQueue
from infra.events.central_bus import CentralBus
from infra.events.dead_letters import Undelivered
from infra.events.findings_bus import FindingsBus
from infra.events.readers_queues import EXPORTS, STOPS, ReadersQueues
from infra.functions import ARRIVALS
from infra.landing_zone.key_policy import Place, of_settings
from infra.settings import NEW_KEY, Settings
from infra.storage.run_bucket import RunBucket, kept_after_creation
from infra.storage.step_table import StepTable
from infra.watch_schedules import WatchSchedules


class Foundation:
    """The resources of a debugger besides its functions, below one construct."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        self.name = f"{settings.name_prefix}smdebug-{_unique(scope)}"
        """The beginning of the names that are chosen here; the others come from CloudFormation."""
        self.deployment = self.name  # the dimension of its metrics
        self.key = self._key(scope, settings)
        self.undelivered = Undelivered(scope, "Undelivered")
        self.bucket = RunBucket(scope, "Runs", settings=settings, key=self.key, name=self.name)
        self.table = StepTable(scope, "StepIndex", settings=settings, key=self.key)
        self.arrivals = ArrivalsQueue(
            scope,
            "Arrivals",
            bucket=self.bucket,
            undelivered=self.undelivered,
            handled_within=ARRIVALS + settings.batch_window_seconds,
        )
        self.bus = FindingsBus(
            scope,
            "Findings",
            name=self.name,
            undelivered=self.undelivered,
            existing=settings.event_bus,
        )
        self.central = (
            CentralBus(
                scope,
                "Central",
                arn=settings.central_bus,
                bus=self.bus,
                undelivered=self.undelivered,
            )
            if settings.central_bus
            else None
        )
        readers = partial(ReadersQueues, scope, bus=self.bus, undelivered=self.undelivered)
        self.stops = readers("Stops", wanted=STOPS, names=settings.stop_queues)
        self.exports = readers("Exports", wanted=EXPORTS, names=settings.export_queues)
        self.alerts = Alerts(scope, "Alerts", settings=settings)
        self.schedules = WatchSchedules(scope, "Watches", name=self.name)

    def _key(self, scope: Construct, settings: Settings) -> kms.IKey | None:
        """The given key, or a new one whose policy lets in the services that this stack uses."""
        if settings.encryption_key_arn != NEW_KEY:
            arn = settings.encryption_key_arn
            return kms.Key.from_key_arn(scope, "Key", arn) if arn else None
        key = kms.Key(
            scope,
            "Key",
            description=f"Runs, records and messages of the training debugger {self.name}",
            enable_key_rotation=True,
            removal_policy=kept_after_creation(settings.removal_policy),
        )
        here = Place(cdk.Aws.PARTITION, cdk.Aws.REGION, cdk.Aws.ACCOUNT_ID, cdk.Aws.URL_SUFFIX)
        for statement in of_settings(here, settings, cdk.Stack.of(scope).stack_name):
            key.add_to_resource_policy(iam.PolicyStatement.from_json(statement))
        return key


def _unique(construct: Construct) -> str:
    """Eight letters that distinguish this debugger from others in the account."""
    path = f"{cdk.Stack.of(construct).stack_name}/{construct.node.path}"
    return hashlib.sha256(path.encode()).hexdigest()[:8]
