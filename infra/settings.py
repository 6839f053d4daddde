"""The settings of a deployment, checked before anything is synthesized."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from infra import tenants
from infra.backtesting import share as backtest_share
from infra.checks import concurrency, elsewhere, landing_zone, recipients, retention, warm_table
from infra.checks.concurrency import SMALLEST_ACCOUNT
from infra.checks.recipients import IN_SSM
from infra.checks.values import READERS, Architecture, Removal, SettingsError, WorkflowType
from infra.log_retentions import LOG_RETENTIONS

__all__ = ["IN_SSM", "Architecture", "Removal", "Settings", "SettingsError", "WorkflowType"]
DEFAULT_RULES = ("default",)
NEW_KEY = "new"
_KEY = r"arn:aws[\w-]*:kms:[\w-]+:\d{12}:key/[\w-]+"
# The default rules are part of a function's environment, which is limited to 4 KB.
_MOST_DEFAULT_RULES = 40
LONGEST_JOB = 120  # seconds, of a function with custom rules


@dataclass(frozen=True)
class Settings:
    """How the debugger is deployed; every field has a default that suits most."""

    stack: str = "smdebug"
    """The name of the stack; a second debugger in the same account and region needs another."""
    bucket: str | None = None
    """An existing bucket to watch, with EventBridge events on; by default the stack creates one."""
    table: str | None = None
    """A step index to go on with, which a deleted stack has kept; by default the stack creates one."""
    run_retention_days: int | None = None
    """Days after which objects below `run_retention_prefixes` are deleted; by default they are kept."""
    run_retention_prefixes: tuple[str, ...] = ()
    """The prefixes of the stack's own bucket whose objects expire, such as `experiments/`."""
    index_retention_days: int = 90
    """Days after a run's last change when its records are deleted."""
    default_rules: tuple[str, ...] = DEFAULT_RULES
    """The built-in rules of every run whose `rules.json` does not switch them off, or the names of sets."""
    rule_sources: tuple[str, ...] = ()
    """`s3://bucket/prefix/` of custom rules, besides `rule-sources/` of the bucket."""
    other_buckets: tuple[str, ...] = ()
    """Buckets with runs that rules may compare with (`other_trials`); they are only read."""
    tenants: tuple[str, ...] = ()
    """`name=folder/` of each tenant, whose runs may compare only with each other; by default each folder."""
    custom_rules_per_run: int = 10
    """How many custom rules a run may have; each runs in a function of its own, beside the others."""
    custom_gb_seconds: int = 100_000
    """What the custom rules of one run may use in a day; then they are stopped."""
    custom_concurrency: int = 0
    """How many of each function with custom rules may run at once; needs an account with 200 or more."""
    backtests_at_once: int = 0
    """How many calls judge runs at once for `smdebug backtest --deployed`; 0 deploys nothing for it."""
    bundle_retention_days: int = 90
    """Days after which bundles are deleted, which make backtests of finished runs cheap; 0 keeps none."""
    nightly_backtest: bool = False
    """Whether the default rules of today judge each night the runs whose newest step is of the day before."""
    nightly_budget: int = 5
    """Dollars that such a night may cost; a night that would cost more is left out."""
    workflow_type: WorkflowType = WorkflowType.EXPRESS
    """`express` costs a tenth; `standard` keeps the history of each execution for 90 days."""
    alert_emails: tuple[str, ...] = ()
    """Addresses that get the alerts, once they have confirmed."""
    alert_phone_numbers: tuple[str, ...] = ()
    """Phone numbers that get the alerts as SMS, such as +15551234567."""
    slack_secret: str | None = None
    """The secret `{"url": …}` of a Slack webhook for findings: its name, or `ssm:` and a parameter's."""
    webhook_secret: str | None = None
    """The secret `{"url": …, "token": …}` of a webhook for unchanged events, named in the same way."""
    alertmanager_secret: str | None = None
    """The secret `{"url": "https://…/api/v2/alerts"}` of Prometheus' Alertmanager, for findings."""
    otlp_secret: str | None = None
    """The secret `{"url": "https://…/v1/logs"}` of a collector of OpenTelemetry, for all events."""
    batch_queues: tuple[str, ...] = ()
    """Job queues of AWS Batch in which `stoptraining` may terminate the job of a run."""
    stop_queues: tuple[str, ...] = ()
    """Clusters of your own, each with a queue of what `stoptraining` wants stopped, such as `hpc`."""
    export_queues: tuple[str, ...] = ()
    """Queues of finished runs, from which `smdebug export TOOL --queue` sends them, such as `mlflow`."""
    event_bus: str | None = None
    """An existing bus for the findings, by its name; by default the stack creates one."""
    alert_topic: str | None = None
    """An existing SNS topic for the alerts, by its ARN; by default the stack creates one."""
    central_bus: str | None = None
    """The ARN of a bus, of any account and region, that gets all events and alarms of this stack."""
    memory_mb: int = 1024
    """Memory of the functions that evaluate rules."""
    scratch_mb: int = 4096
    """Their `/tmp`, for event files that are too large for the memory."""
    architecture: Architecture = Architecture.ARM64
    """The processor of the functions; custom rules with their own requirements may need `x86_64`."""
    encryption_key_arn: str | None = None
    """Your KMS key for everything that takes one, or `new` to create it; by default AWS's own keys."""
    log_retention_days: int = 30
    """Days after which logs of the functions are deleted."""
    removal_policy: Removal = Removal.RETAIN
    """`retain` keeps the runs and the step index when the stack is deleted; `destroy` does not."""
    point_in_time_recovery: bool = True
    """Backups of the step index, for any second of the last 35 days."""
    table_writes_per_second: int = 0
    """What a new step index takes from its first second on; with 0 it begins with 4,000."""
    batch_window_seconds: int = 0
    """How long notifications are collected into batches; use 2 for more than 16 workers."""
    incomplete_step_timeout_seconds: int = 900
    """How long an incomplete step is waited for."""
    stall_timeout_seconds: int = 1800
    """How long a run may save nothing before it is reported as stalled."""
    silence_timeout_seconds: int = 21600
    """How long a run may save nothing before it counts as ended; new data reopens it."""
    custom_rules: Path = field(default=Path(__file__).parents[1] / "rules" / "custom")
    """The folder whose rule files are deployed, one function each."""
    account_concurrency: int = SMALLEST_ACCOUNT
    """How many functions your account may run at once (Lambda's quota `Concurrent executions`)."""
    reserved_concurrency: int = 0
    """How many of them only the evaluation may use; needs an account with 200 or more."""
    gradual_deployment: bool = False
    """Whether new code of the busiest functions gets a tenth of the calls first, and goes if it fails."""
    permissions_boundary: str | None = None
    """The policy that bounds every role: its ARN, or its name in this account."""
    role_path: str = "/"
    """The path of every role, such as `/workloads/`."""
    name_prefix: str = ""
    """The beginning of every name; the names that CloudFormation chooses begin with `stack`."""
    tags: tuple[str, ...] = ()
    """`key=value` of each tag of every resource that can have one."""
    vpc_subnets: tuple[str, ...] = ()
    """The subnets of all functions; by default they are in no VPC of yours."""
    custom_rule_subnets: tuple[str, ...] = ()
    """The subnets of functions with custom rules, such as some without a way out; else `vpc_subnets`."""
    vpc_security_groups: tuple[str, ...] = ()
    """The security groups of functions in a VPC."""
    local: bool = False
    """For the local stack: the layer has no wheels. Nothing else differs."""

    def __post_init__(self) -> None:
        for check in (
            self._check_buckets,
            self._check_tenants,
            self._check_budget,
            self._check_backtests,
            self._check_recipients,
            self._check_numbers,
            self._check_default_rules,
            self._check_key,
            self._check_folder,
            self._check_stack,
            self._check_retention,
            self._check_concurrency,
            self._check_landing_zone,
            self._check_deployment,
        ):
            check()

    @property
    def ingest_at_once(self) -> int:
        """How many batches of arrivals are handled at once: few, so that the rules are not starved."""
        return max(2, min(1000, self.account_concurrency // 20))  # Lambda accepts 2 to 1,000

    @property
    def groups_at_once(self) -> int:
        """How many groups of rules one execution evaluates at once."""
        return max(2, min(40, self.account_concurrency // 5))  # an inline Map runs at most 40

    @property
    def readers_at_once(self) -> int:
        """How many functions one evaluation may have read for it; too few would not be faster than itself."""
        share = min(32, self.account_concurrency // 30)
        return share if share >= 4 else 0

    @property
    def subnets_of_custom_rules(self) -> tuple[str, ...]:
        """The subnets of functions that run code of users."""
        return self.custom_rule_subnets or self.vpc_subnets

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Settings:
        """Read the settings from the values of `cdk.json` and of `cdk deploy -c name=value`."""
        known = {f.name: f for f in fields(cls)}
        given: dict[str, Any] = {}
        for name, value in context.items():
            if name in known:
                if value not in ("", None):
                    given[name] = READERS[str(known[name].type)](name, value)
            elif not re.search(r"[:@/]", name):  # CDK's own: aws:cdk:…, @aws-cdk/…, hosted-zone:…
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(known)}."
                raise SettingsError(f"There is no setting {name!r}; {hint}")
        return cls(**given)

    def _check_buckets(self) -> None:
        for name, bucket in [
            ("bucket", self.bucket),
            *(("other_buckets", other) for other in self.other_buckets),
        ]:
            if bucket is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", bucket):
                raise SettingsError(
                    f"{name}={bucket!r} is not a bucket name: write it without s3:// and key."
                )
        for source in self.rule_sources:
            if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/([^*?]*/)?", source):
                raise SettingsError(
                    f"rule_sources={source!r} is not a prefix: write s3://bucket/prefix/ with a final slash."
                )
        if self.table is not None and not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", self.table):
            raise SettingsError(
                f"table={self.table!r} is not the name of a table: write it without its ARN, as the output "
                "StepIndex of the earlier stack has it."
            )
        if self.bucket and self.run_retention_days is not None:
            raise SettingsError(
                f"run_retention_days={self.run_retention_days} applies to the stack's own bucket only: "
                f"set a lifecycle rule on {self.bucket!r} yourself, or omit `bucket`."
            )

    def _check_tenants(self) -> None:
        if problem := tenants.problem_with(self.tenants, (self.bucket, *self.other_buckets)):
            raise SettingsError(problem)

    def _check_budget(self) -> None:
        if not 1 <= self.custom_rules_per_run <= 100:
            raise SettingsError(f"custom_rules_per_run={self.custom_rules_per_run} is outside 1 to 100.")
        at_once = self.custom_rules_per_run * self.memory_mb * LONGEST_JOB // 1024
        if not 2 * at_once <= self.custom_gb_seconds <= 1_000_000_000:
            raise SettingsError(
                f"custom_gb_seconds={self.custom_gb_seconds} is outside {2 * at_once} to 1000000000: each "
                f"job reserves {LONGEST_JOB} s of {self.memory_mb} MB, and a run may have "
                f"{self.custom_rules_per_run} at once."
            )

    def _check_backtests(self) -> None:
        if problem := backtest_share.problem_with(self):
            raise SettingsError(problem)

    def _check_stack(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", self.stack):
            raise SettingsError(
                f"stack={self.stack!r} is not a stack name: use up to 64 letters, digits and hyphens, "
                "beginning with a letter."
            )

    def _check_retention(self) -> None:
        if problem := retention.problem_with(self.run_retention_days, self.run_retention_prefixes):
            raise SettingsError(problem)

    def _check_concurrency(self) -> None:
        if problem := concurrency.problem_with(
            self.account_concurrency,
            reserved=self.reserved_concurrency,
            custom=self.custom_concurrency,
            rules=self.custom_rules,
        ):
            raise SettingsError(problem)

    def _check_landing_zone(self) -> None:
        if problem := landing_zone.problem_with(self):
            raise SettingsError(problem)

    def _check_deployment(self) -> None:
        if self.gradual_deployment and self.local:
            raise SettingsError(
                "gradual_deployment=true has no meaning on the local stack, where no calls come during a "
                "deployment: omit it."
            )

    def _check_recipients(self) -> None:
        if problem := recipients.problem_with(self) or elsewhere.problem_with(self):
            raise SettingsError(problem)

    def _check_numbers(self) -> None:
        if problem := warm_table.problem_with(self.table_writes_per_second, self.table):
            raise SettingsError(problem)
        for name, least, most, why in (
            ("run_retention_days", 1, 36500, "days"),
            ("index_retention_days", 1, 3650, "days"),
            ("bundle_retention_days", 0, 3650, "days"),
            ("memory_mb", 256, 10240, "numpy's minimum and Lambda's maximum"),
            ("scratch_mb", 512, 10240, "Lambda's limits"),
            ("batch_window_seconds", 0, 300, "Lambda's limits"),
            ("incomplete_step_timeout_seconds", 60, 7 * 86400, "a minute to a week"),
            ("stall_timeout_seconds", 60, 7 * 86400, "a minute to a week"),
            ("silence_timeout_seconds", 300, 30 * 86400, "five minutes to thirty days"),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise SettingsError(f"{name}={value} is outside {least} to {most} ({why}).")
        if self.log_retention_days not in LOG_RETENTIONS:
            raise SettingsError(
                f"log_retention_days={self.log_retention_days} is not a retention of CloudWatch: "
                f"use one of {', '.join(map(str, LOG_RETENTIONS))}."
            )
        if self.silence_timeout_seconds <= self.stall_timeout_seconds:
            raise SettingsError(
                f"silence_timeout_seconds={self.silence_timeout_seconds} would end a run before it is "
                f"reported as stalled, after {self.stall_timeout_seconds} s: make it longer."
            )

    def _check_default_rules(self) -> None:
        for rule in self.default_rules:
            if not re.fullmatch(r"[A-Za-z_]\w{0,63}", rule):
                raise SettingsError(
                    f"default_rules: {rule!r} is not a rule name; docs/rules.md lists them. "
                    "Parameters belong in the rules.json of a run."
                )
        if twice := sorted({rule for rule in self.default_rules if self.default_rules.count(rule) > 1}):
            raise SettingsError(f"default_rules: {', '.join(twice)} is listed twice; once is enough.")
        if len(self.default_rules) > _MOST_DEFAULT_RULES:
            raise SettingsError(
                f"default_rules names {len(self.default_rules)} rules, and at most {_MOST_DEFAULT_RULES} fit "
                "into a function's environment: put the others into the rules.json of the runs."
            )

    def _check_key(self) -> None:
        arn = self.encryption_key_arn
        if arn not in (None, NEW_KEY) and not re.fullmatch(_KEY, str(arn)):
            raise SettingsError(
                f"encryption_key_arn={arn!r} is not the ARN of a KMS key: write "
                "arn:aws:kms:<region>:<account>:key/<id>, not an alias, or `new` to create a key."
            )

    def _check_folder(self) -> None:
        if not self.custom_rules.is_dir():
            raise SettingsError(f"custom_rules={str(self.custom_rules)!r} is not a folder.")
