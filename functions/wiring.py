"""From the environment to the ports: each is made on first use and kept."""

from __future__ import annotations

import os
import time
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from functions.environment import (
    ActEnvironment,
    BacktestEnvironment,
    BadEnvironment,
    BundleAccess,
    ChecksAccess,
    ClaimEnvironment,
    CustomRuleNames,
    IndexAccess,
    NightlyEnvironment,
    NotifyEnvironment,
    ReaderAccess,
    SandboxedBacktestEnvironment,
    ScheduleAccess,
    TableAccess,
    TopicAccess,
    WebhookEnvironment,
    WorkflowAccess,
)
from functions.world import AppSettings, NoReaders, World

if TYPE_CHECKING:
    from functions.backtests.nightly import NightlyPorts
    from functions.backtests.ports import BacktestPorts
    from functions.followup.actions import ActionPorts
    from functions.followup.notifications import NotificationPorts
    from functions.followup.webhooks import WebhookPorts
    from functions.ports import CheckQueue, ItemStore, Lender, Readers, Schedules, Topic, Workflow
    from smdebug.storage import Storage


@cache
def world(given: type[IndexAccess]) -> World:
    """Return the world of a function with that environment; ports it was not given refuse every call."""
    from functions.adapters.aws import ObjectsInS3, SystemClock
    from functions.step_index import StepIndex

    environment = given.read(os.environ)
    return World(
        index=StepIndex(_items_in(environment), kept_for=environment.index_retention),
        objects=ObjectsInS3(lambda: client("s3")),
        workflow=_workflow(environment),
        checks=_checks(environment),
        schedules=_schedules(environment),
        clock=SystemClock(),
        open_run=opened,
        lender=_lender(environment),
        settings=settings(environment),
        readers=_readers(),
    )


def opened(run: str) -> Storage:
    """Return the storage of a run, or of a whole bucket."""
    from smdebug.storage import open_storage

    return open_storage(f"s3://{run}")


def settings(environment: IndexAccess) -> AppSettings:
    """Return the settings in the function's environment."""
    names = environment.custom_functions if isinstance(environment, CustomRuleNames) else {}
    of_all: dict[str, Any] = {
        "default_rules": environment.default_rules,
        "incomplete_step_timeout": environment.incomplete_step_timeout,
        "stall_timeout": environment.stall_timeout,
        "silence_timeout": environment.silence_timeout,
        "custom_functions": names,
        "tenants": environment.tenants,
        "custom_rules_per_run": environment.custom_rules_per_run,
        "custom_gb_seconds": environment.custom_gb_seconds,
        "custom_memory_mb": environment.custom_memory_mb,
    }
    if isinstance(environment, ClaimEnvironment):
        of_all |= {
            "sandbox": environment.sandbox,
            "rule_sources": environment.rule_sources,
            "partition": environment.rule_role.split(":")[1],
        }
    return AppSettings(**of_all)


@cache
def items() -> ItemStore:
    """Return the table of the step index, item by item."""
    return _items_in(TableAccess.read(os.environ))


@cache
def action_ports() -> ActionPorts:
    """Return what carrying out the actions of a finding needs."""
    from functions.adapters.aws import SystemClock
    from functions.adapters.control_objects import ControlObjectsInS3
    from functions.adapters.training_jobs import JobsOfBatch, SageMakerJobs
    from functions.decisions.action_plan import Endpoints
    from functions.followup.action_outcomes import OutcomesInIndex
    from functions.followup.actions import ActionPorts

    environment = ActEnvironment.read(os.environ)
    return ActionPorts(
        jobs=SageMakerJobs(lambda: client("sagemaker")),
        batch=JobsOfBatch(lambda: client("batch")),
        control=ControlObjectsInS3(lambda: client("s3")),
        topic=_topic(environment),
        outcomes=OutcomesInIndex(_items_in(environment)),
        checks=_checks(environment),
        clock=SystemClock(),
        endpoints=Endpoints(
            environment.alert_emails, environment.alert_phone_numbers, environment.batch_queues
        ),
    )


@cache
def backtest_ports() -> BacktestPorts:
    """Return what judging the runs of a backtest needs."""
    from functions.adapters.aws import CredentialsOfRole, SystemClock
    from functions.backtests.ports import BacktestPorts
    from functions.backtests.spending import PurseInTable

    lends = "SMDEBUG_BACKTEST_ROLE" in os.environ
    given = SandboxedBacktestEnvironment if lends else BacktestEnvironment
    environment = given.read(os.environ)
    clock = SystemClock()
    role = environment.reading_role if isinstance(environment, SandboxedBacktestEnvironment) else ""
    return BacktestPorts(
        opened(environment.bucket),
        PurseInTable(_items_in(environment), clock.now),
        clock,
        CredentialsOfRole(role, lambda: client("sts")) if role else _NotGiven("credentials to lend"),
        environment.memory_mb,
        role.split(":")[1] if role else "aws",
        bundles(),
    )


@cache
def bundles() -> str:
    """Return the place of the bundles of runs; empty in a stack that keeps none."""
    return BundleAccess.read(os.environ).bundles if "SMDEBUG_BUNDLES" in os.environ else ""


@cache
def nightly_ports() -> NightlyPorts:
    """Return what planning the nightly backtest needs."""
    from functions.adapters.aws import SystemClock, Workflows
    from functions.backtests.nightly import NightlyPorts
    from smdebug.backtesting.deployed.plan import Capacity
    from smdebug.service.step_index.formats import ReadableItems

    environment = NightlyEnvironment.read(os.environ)
    return NightlyPorts(
        opened(environment.bucket),
        ReadableItems(_items_in(environment)),
        Workflows(environment.machine, lambda: client("stepfunctions")),
        SystemClock(),
        environment.default_rules,
        Capacity(environment.at_once, environment.memory_mb),
        environment.budget,
    )


@cache
def notification_ports() -> NotificationPorts:
    """Return what sending a message once needs."""
    from functions.adapters.aws import SystemClock
    from functions.followup.notifications import NotificationPorts

    environment = NotifyEnvironment.read(os.environ)
    return NotificationPorts(_topic(environment), _items_in(environment), SystemClock())


@cache
def webhook_ports() -> WebhookPorts:
    """Return what posting to a webhook needs."""
    from functions.adapters.webhook import Posts, SecretsOfAws
    from functions.followup.webhooks import WebhookPorts

    environment = WebhookEnvironment.read(os.environ)
    return WebhookPorts(
        SecretsOfAws(lambda: client("secretsmanager"), lambda: client("ssm")),
        Posts(),
        time.sleep,
        environment.secret,
        environment.form,
    )


def _items_in(environment: TableAccess) -> ItemStore:
    from functions.adapters.dynamodb import DynamoItems

    return DynamoItems(environment.table, client("dynamodb"))


def _topic(environment: TopicAccess) -> Topic:
    from functions.adapters.topic import SnsTopic

    return SnsTopic(environment.topic, lambda: client("sns"))


def _workflow(environment: object) -> Workflow:
    from functions.adapters.aws import Workflows

    if isinstance(environment, WorkflowAccess):
        return Workflows(environment.workflow, lambda: client("stepfunctions"))
    return _NotGiven("the workflow")


def _checks(environment: object) -> CheckQueue:
    from functions.adapters.aws import CheckQueueInSqs

    if isinstance(environment, ScheduleAccess):  # it is called by the queue, or calls what is
        return _schedules(environment)
    if isinstance(environment, ChecksAccess):
        return CheckQueueInSqs(environment.checks_queue, lambda: client("sqs"))
    return _NotGiven("the queue")


def _schedules(environment: object) -> Schedules:
    from functions.adapters.aws import OneShotSchedules

    if isinstance(environment, ScheduleAccess):
        return OneShotSchedules(
            group=environment.schedule_group,
            role=environment.schedule_role,
            target=environment.watch_arn,
            client=lambda: client("scheduler"),
        )
    return _NotGiven("the schedules")


def _readers() -> Readers:
    from functions.adapters.readers import ReadersInLambda

    if "SMDEBUG_READER" not in os.environ:
        return NoReaders()
    environment = ReaderAccess.read(os.environ)
    return ReadersInLambda(environment.reader, environment.readers_at_once, hasty_lambda)


def _lender(environment: object) -> Lender:
    from functions.adapters.aws import CredentialsOfRole

    if isinstance(environment, ClaimEnvironment):
        return CredentialsOfRole(environment.rule_role, lambda: client("sts"))
    return _NotGiven("credentials to lend")


class _NotGiven:
    """A port that the function was not given: every call raises `BadEnvironment`."""

    def __init__(self, what: str):
        self._what = what

    def _refuse(self, *_: object, **__: object) -> Any:
        raise BadEnvironment(f"This function was not given {self._what}.")

    start = leave = wake = lend = _refuse


@cache
def client(service: str) -> Any:
    """Return the client of a service, one for as long as this process lives."""
    import boto3
    from botocore.config import Config

    patient = Config(
        retries={"mode": "adaptive", "total_max_attempts": 5}, connect_timeout=5, read_timeout=30
    )
    return cast(Any, boto3).client(service, config=patient)


@cache
def hasty_lambda() -> Any:
    """Return a client of Lambda for calls that nobody has to wait for: one attempt, and a short one."""
    import boto3
    from botocore.config import Config

    hasty = Config(
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=2,
        read_timeout=20,
        max_pool_connections=32,
    )
    return cast(Any, boto3).client("lambda", config=hasty)
