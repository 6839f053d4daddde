"""boto3 clients of the local AWS, one per service and caller."""

from __future__ import annotations

import threading
from typing import Any, cast

from local_aws.gate import OWNER, Gate, KnownKey
from local_aws.permissions.policies import Caller
from local_aws.template import REGION


class Clients:
    """Clients with the identity of a role, or of the account's owner."""

    def __init__(self, endpoint: str, gate: Gate):
        self._endpoint = endpoint
        self._gate = gate
        self._made: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def get(self, service: str, role: str = "") -> Any:
        """A client of that service; without a role it is the owner's."""
        key = OWNER
        if role:
            key = f"ROLE{role.rsplit('/', 1)[1]}".replace("/", "")
            self._gate.register(key, KnownKey(Caller(role)))
        with self._lock:
            if (service, key) not in self._made:
                self._made[service, key] = self._make(service, key)
            return self._made[service, key]

    def _make(self, service: str, key: str) -> Any:
        import boto3
        from botocore.config import Config

        config = Config(
            parameter_validation=False,
            retries={"total_max_attempts": 1},
            max_pool_connections=50,
            connect_timeout=10,
            read_timeout=600,
        )
        return cast(Any, boto3).client(
            service,
            region_name=REGION,
            endpoint_url=self._endpoint,
            aws_access_key_id=key,
            aws_secret_access_key="local",  # noqa: S106 - nothing checks it
            config=config,
        )
