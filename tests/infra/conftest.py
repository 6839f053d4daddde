"""The application, synthesized once per configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.app import NAME, app_with  # before aws_cdk: it finds the node that jsii needs
from infra.settings import Settings, WorkflowType

RULE = """
from smdebug.rules import Rule


class LossTooSmooth(Rule):
    def invoke_at_step(self, step):
        return False
"""
CONTEXT = json.loads((Path(__file__).parents[2] / "cdk.json").read_text())["context"]
PREFIX = "acme-ml-"
UNBUNDLED = {**CONTEXT, "aws:cdk:bundling-stacks": []}


class Stack:
    """A synthesized template, with queries for tests."""

    def __init__(self, template: dict[str, Any]):
        self.template = template
        self.resources: dict[str, Any] = template["Resources"]

    def of(self, type: str) -> dict[str, Any]:
        """Logical id -> properties of every resource of the type."""
        return {
            logical_id: resource.get("Properties", {})
            for logical_id, resource in self.resources.items()
            if resource["Type"] == type
        }

    def single(self, type: str, beginning: str = "") -> Any:
        found = [properties for name, properties in self.of(type).items() if name.startswith(beginning)]
        assert len(found) == 1, f"{len(found)} of {type} {beginning}"
        return found[0]

    def function(self, name: str) -> Any:
        return self.single("AWS::Lambda::Function", f"Debugger{name}Function")

    def statements_of(self, role: str) -> list[dict[str, Any]]:
        """The statements of a role, by its logical id."""
        return [
            statement
            for policy in self.of("AWS::IAM::Policy").values()
            if {"Ref": role} in policy["Roles"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]

    def text(self, value: Any) -> str:
        """An ARN or name, with <Name> for parts that are known only at deployment."""
        match value:
            case {"Ref": name}:
                return f"<{name}>"
            case {"Fn::GetAtt": [name, _]}:
                return f"<{name}>"
            case {"Fn::Join": [between, parts]}:
                return str(between).join(map(self.text, parts))
        assert isinstance(value, str), value
        return value


def environment(function: dict[str, Any]) -> dict[str, Any]:
    return function.get("Environment", {}).get("Variables", {})


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def synthesized(settings: Settings, folder: Path, **context: Any) -> Stack:
    app = app_with(
        settings,
        context={**UNBUNDLED, **context},
        outdir=str(folder),
        builtin_cloud_formation_validation=False,
    )
    return Stack(app.synth().get_stack_by_name(settings.stack).template)


@pytest.fixture(scope="session")
def rules_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("custom")
    (folder / "loss_too_smooth.py").write_text(RULE)
    return folder


@pytest.fixture(scope="session")
def everything(rules_folder: Path) -> Settings:
    """Settings that all differ from their defaults."""
    return Settings(
        bucket="my-runs",
        rule_sources=("s3://elsewhere/rules/",),
        other_buckets=("old-runs",),
        workflow_type=WorkflowType.STANDARD,
        alert_emails=("me@example.org", "you@example.org"),
        alert_phone_numbers=("+15551234567",),
        permissions_boundary="Bounded",
        role_path="/workloads/ml/",
        tags=("team=ml", "cost-centre=42"),
        slack_secret="slack",
        webhook_secret="pager",
        alertmanager_secret="alerts",
        otlp_secret="ssm:/teams/collector",
        batch_queues=("training", "night"),
        stop_queues=("hpc", "gpu"),
        export_queues=("mlflow",),
        encryption_key_arn="arn:aws:kms:us-east-1:123456789012:key/mine",
        table_writes_per_second=20_000,
        batch_window_seconds=2,
        custom_rules=rules_folder,
    )


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Stack]:
    def synthesize(settings: Settings, **context: Any) -> Stack:
        return synthesized(settings, tmp_path_factory.mktemp("cdk"), **context)

    return synthesize


@pytest.fixture(scope="session")
def default_stack(synthesize: Callable[..., Stack]) -> Stack:
    return synthesize(Settings())


@pytest.fixture(scope="session")
def full_stack(synthesize: Callable[..., Stack], everything: Settings) -> Stack:
    return synthesize(everything)


@pytest.fixture(scope="session")
def zone_stack(synthesize: Callable[..., Stack], zone_settings: Settings) -> Stack:
    return synthesize(zone_settings)


@pytest.fixture(scope="session")
def joined_settings() -> Settings:
    """A stack that uses a bus and a topic of others, and reports to a central account."""
    return Settings(
        event_bus="shared",
        alert_topic="arn:aws:sns:us-east-1:123456789012:on-call",
        alert_emails=("me@example.org",),
        central_bus="arn:aws:events:eu-west-1:210987654321:event-bus/all-runs",
        stop_queues=("hpc",),
    )


@pytest.fixture(scope="session")
def joined_stack(synthesize: Callable[..., Stack], joined_settings: Settings) -> Stack:
    return synthesize(joined_settings)


@pytest.fixture(scope="session")
def zone_settings() -> Settings:
    """Backtests, a new key and a VPC, in a landing zone."""
    return Settings(
        stack=f"{PREFIX}{NAME}",
        name_prefix=PREFIX,
        permissions_boundary="arn:aws:iam::123456789012:policy/limits/Bounded",
        role_path="/workloads/",
        tags=("team=ml", "cost-centre=42"),
        log_retention_days=7,
        encryption_key_arn="new",
        vpc_subnets=("subnet-0123456789abcdef0", "subnet-0123456789abcdef1"),
        custom_rule_subnets=("subnet-0aaaaaaaaaaaaaaaa",),
        vpc_security_groups=("sg-0123456789abcdef0",),
        alert_emails=("me@example.org",),
        webhook_secret="pager",
        backtests_at_once=2,
        nightly_backtest=True,
        account_concurrency=40,
    )


@pytest.fixture(scope="session", params=["default", "everything"])
def stack(request: pytest.FixtureRequest, default_stack: Stack, full_stack: Stack) -> Stack:
    """Both stacks in turn, for tests of any deployment."""
    return default_stack if request.param == "default" else full_stack
