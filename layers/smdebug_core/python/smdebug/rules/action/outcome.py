"""The outcome of an action, and the AWS client for actions."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

DEFAULT_REGION = "us-east-1"


class ActionOutcome(NamedTuple):
    """An action, whether it was done, and a sentence about it."""

    action: str
    done: bool
    message: str


def aws_client(service: str) -> Any:
    """Return a client for the service, in the region of the environment, or else us-east-1.

    boto3 is imported only here: rules without actions work without it.
    """
    import boto3

    session: Any = boto3.Session()
    region = os.environ.get("AWS_REGION") or session.region_name or DEFAULT_REGION
    return session.client(service, region_name=region)
