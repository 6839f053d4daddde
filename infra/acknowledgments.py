"""Where the AwsSolutions rules of cdk-nag would have it otherwise: said beside the thing, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
from constructs import Construct

PACK = "AwsSolutions"


class ReasonMissing(TypeError):
    """A permission on more than one named resource needs a sentence that says why: pass `because`."""


def acknowledge(construct: Construct, rule: str, because: str) -> None:
    """This rule does not hold here, for that reason."""
    cdk.Validations.of(construct).acknowledge(
        cdk.Acknowledgment(id=f"{PACK}::{PACK}-{rule}", reason=because)
    )


def acknowledge_wildcards(
    construct: Construct, resources: Sequence[str], because: str | None
) -> None:
    """The role below `construct` may touch resources that are named by a pattern, for that reason."""
    for resource in resources:
        told = _spoken(cdk.Stack.of(construct).resolve(resource))
        if "*" not in told:
            continue
        if not because:
            raise ReasonMissing(f"{construct.node.path} may touch {told}: say why, with `because`.")
        acknowledge(construct, f"IAM5[Resource::{told}]", because)


def _spoken(resource: Any) -> str:
    """The resource as cdk-nag names it in its findings."""
    match resource:
        case str():
            return resource
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [between, parts]}:
            return str(between).join(map(_spoken, parts))
    raise TypeError(f"{resource!r} is no way to name a resource that we use")
