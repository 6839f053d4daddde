"""What became of an action."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

DEFAULT_REGION = "us-east-1"


class ActionOutcome(NamedTuple):
    """One action, done or not, and in a sentence what became of it."""

    action: str
    done: bool
    message: str


def aws_client(service: str) -> Any:
    """A client for the service, in the region of the environment, else us-east-1.

    boto3 is imported here and only here: rules without actions work without it.
    """
    import boto3

    session: Any = boto3.Session()
    region = os.environ.get("AWS_REGION") or session.region_name or DEFAULT_REGION
    return session.client(service, region_name=region)
