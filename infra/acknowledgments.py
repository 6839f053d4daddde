"""Exceptions to the AwsSolutions rules of cdk-nag, each with its reason beside the construct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
from constructs import Construct

PACK = "AwsSolutions"


class ReasonMissing(TypeError):
    """A permission on a pattern of resources needs a reason: pass `because`."""


def acknowledge(construct: Construct, rule: str, because: str) -> None:
    """Exempt the construct from this rule, for that reason."""
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=f"{PACK}::{PACK}-{rule}", reason=because))


def acknowledge_wildcards(construct: Construct, resources: Sequence[str], because: str | None) -> None:
    """Allow the role below `construct` to use patterns among these resources, for that reason."""
    for resource in resources:
        name = _nag_name(cdk.Stack.of(construct).resolve(resource))
        if "*" not in name:
            continue
        if not because:
            raise ReasonMissing(f"{construct.node.path} may touch {name}: pass the reason as `because`.")
        acknowledge(construct, f"IAM5[Resource::{name}]", because)


def _nag_name(resource: Any) -> str:
    """The name of the resource in cdk-nag's findings."""
    match resource:
        case str():
            return resource
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [between, parts]}:
            return str(between).join(map(_nag_name, parts))
    raise TypeError(f"{resource!r} is not a supported way to name a resource")
