"""Roles that services of AWS take on, and what a role may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.acknowledgments import acknowledge_wildcards


def role_of(
    scope: Construct,
    service: str,
    does: str,
    *,
    id: str = "Role",
    only: Mapping[str, object] | None = None,
) -> iam.Role:
    """Return a role that this service takes on for this account alone: it serves strangers, too."""
    conditions = {"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}, **(only or {})}
    principal = iam.ServicePrincipal(f"{service}.amazonaws.com", conditions=conditions)
    return iam.Role(scope, id, assumed_by=principal, description=does)


def allow(
    role: iam.Role,
    *actions: str,
    on: Sequence[str],
    because: str | None = None,
    conditions: Mapping[str, object] | None = None,
) -> None:
    """Allow the role these actions; `because` is the reason if a resource is a pattern."""
    acknowledge_wildcards(role, on, because)
    role.add_to_policy(
        iam.PolicyStatement(actions=list(actions), resources=list(on), conditions=dict(conditions or {}))
    )
