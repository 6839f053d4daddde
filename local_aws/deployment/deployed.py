"""What a deployment consists of once it exists."""

from __future__ import annotations

from dataclasses import dataclass, field

from local_aws.permissions.policies import Policies
from local_aws.running.functions import Function


@dataclass(frozen=True)
class QueueMapping:
    """An event source mapping: batches of a queue for a function."""

    queue: str  # its name
    function: str
    batch_size: int
    window: float  # seconds
    reports_failures: bool
    at_once: int  # batches that are handled at the same time


@dataclass
class Deployed:
    """The resources of a deployed template, filled while it is being deployed."""

    policies: Policies = field(default_factory=Policies)
    functions: dict[str, Function] = field(default_factory=dict)
    mappings: list[QueueMapping] = field(default_factory=list)
    machines: dict[str, str] = field(default_factory=dict)  # ARN -> the ARN of its role
    physical: dict[str, str] = field(default_factory=dict)  # logical id -> physical id
    outputs: dict[str, str] = field(default_factory=dict)
