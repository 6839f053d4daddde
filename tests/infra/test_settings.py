"""Settings: an invalid one is refused by name, with what to write instead."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from infra import tenants
from infra.settings import Architecture, Removal, Settings, SettingsError, WorkflowType
from tests.support.looking import each

DOCS = Path(__file__).parents[2] / "docs" / "deploy.md"


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ({"bucket": "s3://runs"}, "write it without s3://"),
        ({"bucket": "Runs"}, "'Runs' is not a bucket name"),
        ({"other_buckets": ("runs/a",)}, "other_buckets='runs/a' is not a bucket name"),
        ({"rule_sources": ("s3://runs/rules",)}, "with a final slash"),
        ({"rule_sources": ("s3://runs/*/",)}, "is not a prefix"),
        ({"bucket": "runs", "run_retention_days": 3}, "set a lifecycle rule on 'runs' yourself"),
        ({"run_retention_days": 0}, "outside 1 to 36500"),
        ({"run_retention_days": 30}, "needs run_retention_prefixes"),
        ({"run_retention_prefixes": ("a/",)}, "has no effect without run_retention_days"),
        ({"run_retention_days": 30, "run_retention_prefixes": ("/a/",)}, "is not a prefix"),
        ({"run_retention_days": 30, "run_retention_prefixes": ("a",)}, "with a final slash"),
        (
            {"run_retention_days": 30, "run_retention_prefixes": ("rule-sources/mine/",)},
            "contains the sources of rules",
        ),
        ({"stack": "my stack"}, "is not a stack name"),
        ({"account_concurrency": 9}, "outside 10 to 100000"),
        ({"reserved_concurrency": 5}, "and account_concurrency is 10"),
        ({"reserved_concurrency": 5, "account_concurrency": 199}, "of 200 or more"),
        ({"reserved_concurrency": 150, "account_concurrency": 200}, "use at most 100"),
        ({"reserved_concurrency": -1}, "is negative"),
        ({"index_retention_days": 0}, "outside 1 to 3650"),
        ({"table_writes_per_second": 3999}, "outside 4000 to 40000"),
        ({"table_writes_per_second": 8000, "table": "kept"}, "is for a new table, and table=kept exists"),
        ({"alert_emails": ("me",)}, "'me' is not an email address"),
        ({"alert_phone_numbers": ("0555 123",)}, r"write \+15551234567"),
        ({"slack_secret": "https://hooks.slack.com/x"}, "the URL goes into it"),
        (
            {"webhook_secret": "ssm:/a//b"},
            "neither the name of a secret in Secrets Manager nor `ssm:`",
        ),
        ({"webhook_secret": "ssm:https://hooks.slack.com/x"}, "the URL goes into it"),
        ({"batch_queues": ("arn:aws:batch:us-east-1:123456789012:job-queue/q",)}, "without its ARN"),
        ({"stop_queues": ("my-cluster",)}, "up to 32 lower-case letters and digits"),
        ({"stop_queues": ("hpc", "hpc")}, "hpc is listed twice; each cluster"),
        ({"export_queues": ("wandb", "wandb")}, "wandb is listed twice; each tool"),
        ({"event_bus": "arn:aws:events:us-east-1:123456789012:event-bus/x"}, "write it without its ARN"),
        ({"alert_topic": "alerts"}, "is not the ARN of a standard topic"),
        ({"alert_topic": "arn:aws:sns:us-east-1:123456789012:alerts.fifo"}, "of a standard topic"),
        ({"central_bus": "central"}, "is not the ARN of a bus"),
        ({"webhook_secret": ""}, "is neither the name of a secret"),
        ({"memory_mb": 128}, "memory_mb=128 is outside 256 to 10240"),
        ({"scratch_mb": 20_000}, "scratch_mb=20000 is outside"),
        ({"batch_window_seconds": 301}, "batch_window_seconds=301 is outside 0 to 300"),
        ({"incomplete_step_timeout_seconds": 5}, "a minute to a week"),
        ({"stall_timeout_seconds": 5}, "a minute to a week"),
        ({"silence_timeout_seconds": 60}, "outside 300"),
        (
            {"stall_timeout_seconds": 900, "silence_timeout_seconds": 900},
            "after 900 s: make it longer",
        ),
        ({"log_retention_days": 31}, "is not a retention of CloudWatch"),
        ({"default_rules": ("Vanishing Gradient",)}, "is not a rule name"),
        ({"default_rules": ("AllZero", "AllZero")}, "AllZero is listed twice"),
        ({"default_rules": tuple(f"Rule{n}" for n in range(41))}, "names 41 rules"),
        ({"encryption_key_arn": "alias/mine"}, "not an alias"),
        ({"custom_rules": Path("/no/such/folder")}, "is not a folder"),
        ({"tenants": ("vision",)}, "write name=folder/ with a final slash"),
        ({"tenants": ("=vision/",)}, "is not a tenant"),
        ({"tenants": ("a=",)}, "is not a tenant"),
        ({"tenants": ("a=vision",)}, "is not a tenant"),
        ({"tenants": ("a=x/../y/",)}, "is not a tenant"),
        ({"tenants": ("a=./",)}, "is not a tenant"),
        ({"tenants": ("a=x//y/",)}, "is not a tenant"),
        ({"tenants": ("a=team-*/",)}, "is not a tenant"),
        ({"tenants": ("a=s3://archive/x/",)}, "in other_buckets"),
        ({"tenants": tuple(f"team-{n}=teams/team-{n}/" for n in range(99))}, "write name=folder/[*]/"),
        ({"custom_rules_per_run": 0}, "outside 1 to 100"),
        ({"custom_gb_seconds": 2399}, "outside 2400 to"),
        ({"memory_mb": 10240, "custom_gb_seconds": 20_000}, "outside 24000 to"),
        ({"custom_concurrency": -1}, "is negative"),
        ({"custom_concurrency": 10}, "leave less than the 100 of 10"),
    ],
)
def test_an_invalid_setting_is_refused_with_what_to_write(invalid: dict[str, Any], message: str):
    with pytest.raises(SettingsError, match=message):
        Settings(**invalid)


def test_every_type_is_read_from_the_context():
    settings = Settings.from_context(
        {
            "bucket": "runs",
            "index_retention_days": "30",
            "default_rules": "AllZero, Overfit",
            "workflow_type": "STANDARD",
            "alert_emails": ["a@example.org", "b@example.org"],
            "point_in_time_recovery": "false",
            "architecture": "x86_64",
            "removal_policy": "destroy",
            "local": True,
            "custom_rules": "rules/custom",
            "slack_secret": "",
            "@aws-cdk/core:something": True,
            "aws:cdk:version-reporting": True,
        }
    )
    assert settings.bucket == "runs"
    assert settings.index_retention_days == 30
    assert settings.default_rules == ("AllZero", "Overfit")
    assert settings.workflow_type is WorkflowType.STANDARD
    assert settings.alert_emails == ("a@example.org", "b@example.org")
    assert settings.point_in_time_recovery is False
    assert settings.architecture is Architecture.X86_64
    assert settings.removal_policy is Removal.DESTROY
    assert settings.local is True
    assert settings.custom_rules.is_absolute()
    assert settings.slack_secret is None


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"alert_email": "me@example.org"}, "did you mean 'alert_emails'"),
        ({"colour": "red"}, "There is no setting 'colour'; the settings are stack, bucket"),
        ({"memory_mb": "1 GB"}, "memory_mb='1 GB' is not a whole number"),
        ({"memory_mb": True}, "is not a whole number"),
        ({"local": "yes"}, "local='yes' is neither true nor false"),
        ({"workflow_type": "fast"}, "is not one of express, standard"),
        ({"alert_emails": 3}, "is neither a list of texts nor comma-separated text"),
        ({"alert_emails": [3]}, "is neither a list of texts nor comma-separated text"),
    ],
)
def test_an_invalid_context_value_is_refused_by_name(context: dict[str, Any], message: str):
    with pytest.raises(SettingsError, match=message):
        Settings.from_context(context)


def test_every_setting_can_be_read_from_the_context_and_is_documented():
    page = DOCS.read_text(encoding="utf-8")
    for field in each(dataclasses.fields(Settings), at_least=20):
        assert f"| `{field.name}` |" in page, field.name
        if field.name not in ("custom_rules", "run_retention_days", "encryption_key_arn"):
            default = getattr(Settings(), field.name)
            value = ",".join(default) if isinstance(default, tuple) else default
            assert getattr(Settings.from_context({field.name: value}), field.name) == default


def test_the_default_rules_are_built_in():
    from smdebug.rules.rule_sets import SET_NAMES
    from smdebug_rules.catalog import CATALOG

    assert set(Settings().default_rules) <= {*CATALOG, *SET_NAMES}


def test_tenants_have_folders_of_the_bucket_or_of_others():
    settings = Settings(
        tenants=("all=/", "a=x/*/", "a=s3://archive/*/"), other_buckets=("archive",), bucket="mine"
    )
    assert tenants.prefixes_of(settings.tenants, "mine") == [
        ("all", "mine/"),
        ("a", "mine/x/*/"),
        ("a", "archive/*/"),
    ]


def test_custom_functions_may_be_reserved_beside_the_evaluation(tmp_path):
    for number in range(4):
        (tmp_path / f"rule{number}.py").write_text("")
    given = {"custom_rules": tmp_path, "account_concurrency": 1000, "reserved_concurrency": 100}
    Settings(**given, custom_concurrency=160)
    with pytest.raises(SettingsError, match="161 for each of 5 functions"):
        Settings(**given, custom_concurrency=161)
