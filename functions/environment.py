"""The environment variables of each function, as typed values. `infra/names.py` is the other side.

A handler's environment names what its function is given; the deployment decides every value, so nothing
here has a default. A variable that is missing or malformed is a `BadEnvironment` that names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from functions.decisions.posting.posts import Form
from functions.decisions.tenants import Tenants
from smdebug.exceptions import SMDebugError


class BadEnvironment(SMDebugError):
    """The function was deployed without a variable that it needs, or with one that it cannot read."""


def _strings(value: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, value.split(","))))


def _json_strings(value: str) -> tuple[str, ...]:
    return tuple(map(str, json.loads(value)))


def _json_mapping(value: str) -> dict[str, str]:
    return dict(json.loads(value))


def _variable(name: str, read: Callable[[str], Any] = str) -> Any:
    return field(metadata={"variable": name, "read": read})


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Variables of one function, read by `read(os.environ)`."""

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Return the values; `BadEnvironment` if one is missing or malformed."""
        values = {}
        for known in fields(cls):
            name = known.metadata["variable"]
            if name not in environ:
                raise BadEnvironment(f"The variable {name} is not set: deploy the stack again.")
            try:
                values[known.name] = known.metadata["read"](environ[name])
            except (ValueError, TypeError, KeyError) as error:
                raise BadEnvironment(
                    f"The variable {name} cannot be read: {error}. Deploy the stack again."
                ) from error
        return cls(**values)


# What a function can be given


@dataclass(frozen=True, kw_only=True)
class TableAccess(Environment):
    """The table of the step index."""

    table: str = _variable("SMDEBUG_TABLE")


@dataclass(frozen=True, kw_only=True)
class IndexAccess(TableAccess):
    """The step index, and the settings that decide what becomes of a run."""

    index_retention: float = _variable("SMDEBUG_INDEX_RETENTION", float)
    default_rules: tuple[str, ...] = _variable("SMDEBUG_DEFAULT_RULES", _strings)
    incomplete_step_timeout: float = _variable("SMDEBUG_INCOMPLETE_STEP_TIMEOUT", float)
    stall_timeout: float = _variable("SMDEBUG_STALL_TIMEOUT", float)
    silence_timeout: float = _variable("SMDEBUG_SILENCE_TIMEOUT", float)
    tenants: Tenants = _variable("SMDEBUG_TENANTS", Tenants.parse)
    custom_rules_per_run: int = _variable("SMDEBUG_CUSTOM_RULES_PER_RUN", int)
    custom_gb_seconds: int = _variable("SMDEBUG_CUSTOM_GB_SECONDS", int)
    custom_memory_mb: int = _variable("SMDEBUG_CUSTOM_MEMORY", int)


@dataclass(frozen=True, kw_only=True)
class WorkflowAccess(Environment):
    """The workflow, to start it."""

    workflow: str = _variable("SMDEBUG_WORKFLOW")


@dataclass(frozen=True, kw_only=True)
class ChecksAccess(Environment):
    """The queue, to leave checks in it: ingest passes them on to the schedules."""

    checks_queue: str = _variable("SMDEBUG_CHECKS_QUEUE")


@dataclass(frozen=True, kw_only=True)
class ScheduleAccess(Environment):
    """The schedules that wake the watch function."""

    schedule_group: str = _variable("SMDEBUG_SCHEDULE_GROUP")
    schedule_role: str = _variable("SMDEBUG_SCHEDULE_ROLE")
    watch_arn: str = _variable("SMDEBUG_WATCH_ARN")


@dataclass(frozen=True, kw_only=True)
class ReaderAccess(Environment):
    """The function that reads shards of a step, where it is deployed, and how many an evaluation may have."""

    reader: str = _variable("SMDEBUG_READER")
    readers_at_once: int = _variable("SMDEBUG_READERS_AT_ONCE", int)


@dataclass(frozen=True, kw_only=True)
class CustomRuleNames(Environment):
    """The custom rules that are deployed, each with the function that runs it."""

    custom_functions: Mapping[str, str] = _variable("SMDEBUG_CUSTOM_RULES", _json_mapping)


@dataclass(frozen=True, kw_only=True)
class TopicAccess(Environment):
    """The topic of the alerts."""

    topic: str = _variable("SMDEBUG_ALERTS_TOPIC")


@dataclass(frozen=True, kw_only=True)
class WebhookEnvironment(Environment):
    """The variables of post_webhook: where its URL is, and the form of a post."""

    secret: str = _variable("SMDEBUG_WEBHOOK_SECRET")
    form: Form = _variable("SMDEBUG_WEBHOOK_FORM", Form)


# The functions


@dataclass(frozen=True, kw_only=True)
class IngestEnvironment(IndexAccess, WorkflowAccess, ScheduleAccess, CustomRuleNames):
    """The variables of ingest and sweep."""


@dataclass(frozen=True, kw_only=True)
class EvaluateEnvironment(IndexAccess, ChecksAccess):
    """The variables of evaluate, commit and finish_run."""


@dataclass(frozen=True, kw_only=True)
class ClaimEnvironment(IndexAccess, ChecksAccess, CustomRuleNames):
    """The variables of claim."""

    sandbox: str = _variable("SMDEBUG_CUSTOM_RULE_SANDBOX")
    rule_sources: tuple[str, ...] = _variable("SMDEBUG_RULE_SOURCES", _json_strings)
    rule_role: str = _variable("SMDEBUG_RULE_ROLE")


@dataclass(frozen=True, kw_only=True)
class WatchEnvironment(IndexAccess, WorkflowAccess, ScheduleAccess):
    """The variables of watch."""


@dataclass(frozen=True, kw_only=True)
class ActEnvironment(TableAccess, ChecksAccess, TopicAccess):
    """The variables of act."""

    alert_emails: tuple[str, ...] = _variable("SMDEBUG_ALERT_EMAILS", _strings)
    alert_phone_numbers: tuple[str, ...] = _variable("SMDEBUG_ALERT_PHONE_NUMBERS", _strings)
    batch_queues: tuple[str, ...] = _variable("SMDEBUG_BATCH_QUEUES", _strings)


@dataclass(frozen=True, kw_only=True)
class NotifyEnvironment(TableAccess, TopicAccess):
    """The variables of notify."""


@dataclass(frozen=True, kw_only=True)
class BacktestEnvironment(TableAccess):
    """The variables of judge_runs: the bucket with the runs, and its memory for the price."""

    bucket: str = _variable("SMDEBUG_BUCKET")
    memory_mb: int = _variable("SMDEBUG_BACKTEST_MEMORY", int)


@dataclass(frozen=True, kw_only=True)
class BundleAccess(Environment):
    """The place of the bundles of runs, in a stack that keeps them."""

    bundles: str = _variable("SMDEBUG_BUNDLES")


@dataclass(frozen=True, kw_only=True)
class SandboxedBacktestEnvironment(BacktestEnvironment):
    """The variables of prepare_backtest."""

    reading_role: str = _variable("SMDEBUG_BACKTEST_ROLE")


@dataclass(frozen=True, kw_only=True)
class NightlyEnvironment(BacktestEnvironment):
    """The variables of plan_nightly."""

    default_rules: tuple[str, ...] = _variable("SMDEBUG_DEFAULT_RULES", _strings)
    machine: str = _variable("SMDEBUG_BACKTESTS")
    at_once: int = _variable("SMDEBUG_BACKTESTS_AT_ONCE", int)
    budget: float = _variable("SMDEBUG_NIGHTLY_BUDGET", float)
