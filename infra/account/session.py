"""The account that the environment names, as the CDK and the AWS CLI find it."""

from __future__ import annotations

import os
from typing import Any

import boto3


def session_of(profile: str | None = None) -> Any:
    """Return boto3's session with this profile, or the environment's own."""
    # boto3 does not know AWS_REGION, which the CDK and the AWS CLI do.
    return boto3.Session(profile_name=profile, region_name=os.environ.get("AWS_REGION") or None)
