"""From the environment to the ports: each is made on first use, and kept."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from functions.world import Settings, World

if TYPE_CHECKING:
    from functions.followup.actions import Hands
    from functions.followup.notifications import Writer
    from functions.ports import ItemStore, Topic


@cache
def world() -> World:
    """Everything this function may touch. What a function was not given, it finds out when it asks."""
    from functions.adapters.aws import (
        CheckQueueInSqs,
        CredentialsOfRole,
        ObjectsInS3,
        OneShotSchedules,
        SystemClock,
        Workflows,
    )
    from functions.step_index import KEPT_FOR, StepIndex
    from smdebug.storage import open_storage

    told = os.environ
    return World(
        index=StepIndex(
            items(),
            kept_for=float(told.get("SMDEBUG_INDEX_RETENTION", KEPT_FOR)),
        ),
        objects=ObjectsInS3(lambda: client("s3")),
        workflow=Workflows(told.get("SMDEBUG_WORKFLOW", ""), lambda: client("stepfunctions")),
        checks=CheckQueueInSqs(told.get("SMDEBUG_CHECKS_QUEUE", ""), lambda: client("sqs")),
        schedules=OneShotSchedules(
            group=told.get("SMDEBUG_SCHEDULE_GROUP", ""),
            role=told.get("SMDEBUG_SCHEDULE_ROLE", ""),
            target=told.get("SMDEBUG_WATCH_ARN", ""),
            client=lambda: client("scheduler"),
        ),
        clock=SystemClock(),
        open_run=lambda run: open_storage(f"s3://{run}"),
        lender=CredentialsOfRole(told.get("SMDEBUG_RULE_ROLE", ""), lambda: client("sts")),
        settings=settings(told),
    )


@cache
def items() -> ItemStore:
    """The table behind the step index, item by item."""
    from functions.adapters.dynamodb import DynamoItems

    return DynamoItems(os.environ["SMDEBUG_TABLE"], client("dynamodb"))


def settings(told: Any) -> Settings:
    """What was decided at deployment; what is not told stays at its default."""
    known = Settings()
    rules = told.get("SMDEBUG_DEFAULT_RULES")
    return Settings(
        default_rules=tuple(filter(None, rules.split(",")))
        if rules is not None
        else known.default_rules,
        incomplete_step_timeout=float(
            told.get("SMDEBUG_INCOMPLETE_STEP_TIMEOUT", known.incomplete_step_timeout)
        ),
        stall_timeout=float(told.get("SMDEBUG_STALL_TIMEOUT", known.stall_timeout)),
        silence_timeout=float(told.get("SMDEBUG_SILENCE_TIMEOUT", known.silence_timeout)),
        end_grace=int(told.get("SMDEBUG_END_GRACE", known.end_grace)),
        custom_functions=json.loads(told.get("SMDEBUG_CUSTOM_RULES") or "{}"),
        sandbox=told.get("SMDEBUG_CUSTOM_RULE_SANDBOX", ""),
        rule_sources=tuple(json.loads(told.get("SMDEBUG_RULE_SOURCES") or "[]")),
        partition=told.get("SMDEBUG_RULE_ROLE", "arn:aws:").split(":")[1],
    )


@cache
def hands() -> Hands:
    """What acting on a finding needs."""
    from functions.adapters.aws import CheckQueueInSqs, SystemClock
    from functions.adapters.control_objects import ControlObjectsInS3
    from functions.adapters.training_jobs import SageMakerJobs
    from functions.decisions.action_plan import Endpoints
    from functions.followup.action_outcomes import OutcomesInIndex
    from functions.followup.actions import Hands

    told = os.environ
    return Hands(
        jobs=SageMakerJobs(lambda: client("sagemaker")),
        control=ControlObjectsInS3(lambda: client("s3")),
        topic=topic(),
        outcomes=OutcomesInIndex(items()),
        checks=CheckQueueInSqs(told.get("SMDEBUG_CHECKS_QUEUE", ""), lambda: client("sqs")),
        clock=SystemClock(),
        endpoints=Endpoints(
            emails=_words(told.get("SMDEBUG_ALERT_EMAILS", "")),
            phones=_words(told.get("SMDEBUG_ALERT_PHONE_NUMBERS", "")),
        ),
    )


@cache
def topic() -> Topic:
    """Where people are told."""
    from functions.adapters.topic import SnsTopic

    return SnsTopic(os.environ["SMDEBUG_ALERTS_TOPIC"], lambda: client("sns"))


@cache
def writer() -> Writer:
    """What telling people once needs."""
    from functions.adapters.aws import SystemClock
    from functions.followup.notifications import Writer

    return Writer(topic(), items(), SystemClock())


def _words(told: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, told.split(","))))


@cache
def client(service: str) -> Any:
    """One client of a service for as long as this process lives."""
    import boto3
    from botocore.config import Config

    patient = Config(
        retries={"mode": "adaptive", "total_max_attempts": 5}, connect_timeout=5, read_timeout=30
    )
    return cast(Any, boto3).client(service, config=patient)
