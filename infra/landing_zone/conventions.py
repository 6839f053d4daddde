"""Boundaries, paths and tags, given to every resource of a construct at once, so that none is forgotten."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.checks.landing_zone import problem_with_stack_name, tags_of
from infra.settings import Settings, SettingsError


def follow_conventions(construct: Construct, settings: Settings) -> None:
    """Give everything below the construct what the account's owners ask for; call it last."""
    if problem := problem_with_stack_name(cdk.Stack.of(construct).stack_name, settings.name_prefix):
        raise SettingsError(problem)
    for key, value in tags_of(settings.tags).items():
        cdk.Tags.of(construct).add(key, value)
    boundary = _arn_of(settings.permissions_boundary)
    if boundary is None and settings.role_path == "/":
        return
    for node in construct.node.find_all():
        if isinstance(node, iam.CfnRole):
            node.permissions_boundary = boundary
            node.path = settings.role_path


def _arn_of(policy: str | None) -> str | None:
    if policy is None or policy.startswith("arn:"):
        return policy
    return f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:policy/{policy}"
