"""A Lambda function of the debugger; what all of them share is defined here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.acknowledgments import acknowledge
from infra.log_retentions import LOG_RETENTIONS
from infra.packaging.assets import ROOT, bundle, copied
from infra.packaging.fingerprints import fingerprint_of
from infra.roles import allow
from infra.settings import Architecture, Settings

_FUNCTIONS = ROOT / "functions"


@dataclass(frozen=True)
class Shared:
    """The common parts of a deployment's functions."""

    layer: lambda_.ILayerVersion
    undelivered: sqs.IQueue  # the dead letters of asynchronous functions
    settings: Settings
    environment: Mapping[str, str] = field(default_factory=dict)


class PythonFunction(Construct):
    """One function with its own role and log; it has no permissions until they are granted."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        shared: Shared,
        handler: str,
        does: str,
        timeout: int,
        memory_mb: int = 512,
        scratch_mb: int = 512,
        is_asynchronous: bool = False,
        is_trusted: bool = True,
        code: lambda_.Code | None = None,
        name: str | None = None,
        reserved: int = 0,
    ) -> None:
        super().__init__(scope, id)
        settings = shared.settings
        self.log_group = logs.LogGroup(
            self,
            "Log",
            retention=logs.RetentionDays[LOG_RETENTIONS[settings.log_retention_days]],
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=does,
        )
        self.may("logs:CreateLogStream", "logs:PutLogEvents", on=[self.log_group.log_group_arn])
        self.timeout = timeout
        self.is_trusted = is_trusted
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            description=does,
            code=code or code_of_functions(),
            handler=handler,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64
            if settings.architecture is Architecture.ARM64
            else lambda_.Architecture.X86_64,
            layers=[shared.layer],
            role=self.role,  # CDK creates it first, with its permissions
            log_group=self.log_group,
            timeout=cdk.Duration.seconds(timeout),
            memory_size=memory_mb,
            ephemeral_storage_size=cdk.Size.mebibytes(scratch_mb),
            environment=dict(shared.environment) if is_trusted else {},
            reserved_concurrent_executions=reserved or None,
        )
        self._called: lambda_.IFunction = self.function
        acknowledge(
            self.function,
            "L1",
            "The layer and its bytecode are built for and tested with Python 3.13.",
        )
        if is_asynchronous:
            resource = self.function.node.default_child
            assert isinstance(resource, lambda_.CfnFunction)
            resource.dead_letter_config = lambda_.CfnFunction.DeadLetterConfigProperty(
                target_arn=shared.undelivered.queue_arn
            )
            self.may("sqs:SendMessage", on=[shared.undelivered.queue_arn])

    @property
    def arn(self) -> str:
        """What calls the function, and what its callers may call: the alias, if there is one."""
        return self._called.function_arn

    @property
    def name(self) -> str:
        """The name by which the function is called, with the one of its alias."""
        return self._called.function_name

    def is_called_as(self, alias: lambda_.IAlias) -> None:
        """Have whatever is connected from now on call this alias instead of the newest code."""
        self._called = alias

    def may(
        self,
        *actions: str,
        on: Sequence[str],
        because: str | None = None,
        conditions: Mapping[str, object] | None = None,
    ) -> None:
        """Allow the actions on these resources only; a pattern among them needs a reason."""
        allow(self.role, *actions, on=on, because=because, conditions=conditions)

    def knows(self, name: str, value: str) -> None:
        """Set an environment variable of the function."""
        self.function.add_environment(name, value)


def code_of_functions() -> lambda_.Code:
    """The package `functions` alone: its dependencies are in the layer."""
    return bundle(_FUNCTIONS, copied(_FUNCTIONS), fingerprint_of([_FUNCTIONS]))
