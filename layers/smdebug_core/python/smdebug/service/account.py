"""The AWS account of the credentials in use."""

from __future__ import annotations

from smdebug.service.aws import Clients, aws_errors, default_clients


def who_am_i(clients: Clients | None = None) -> str:
    """Return the identity of the credentials and the region, with one call to STS."""
    client = (clients or default_clients())("sts")
    with aws_errors("AWS", "sts:GetCallerIdentity"):
        identity = client.get_caller_identity()
    return f"{identity['Account']} as {identity['Arn']} in {client.meta.region_name}"
