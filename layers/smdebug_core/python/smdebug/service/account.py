"""Whose account is asked."""

from __future__ import annotations

from smdebug.service.aws import Clients, default_clients, speaking_of


def who_am_i(clients: Clients | None = None) -> str:
    """The identity of the credentials at hand, and the region: one call to STS."""
    client = (clients or default_clients())("sts")
    with speaking_of("AWS", "sts:GetCallerIdentity"):
        told = client.get_caller_identity()
    return f"{told['Account']} as {told['Arn']} in {client.meta.region_name}"
