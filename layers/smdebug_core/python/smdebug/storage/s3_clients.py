"""The clients that S3 is asked with. Making one takes 100 ms, and its connections more: places share it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugCustomerError
from smdebug.extras import install_command
from smdebug.storage.s3_errors import translated

REQUESTS_AT_A_TIME = 32
_SETTINGS = (
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("AWS_CONFIG_FILE", "~/.aws/config"),
)


class Clients:
    """The client of each process, made on its first use.

    A forked or spawned process has its own, since processes must not share connections. There, a client that
    was passed in is replaced by one for the same endpoint and region.
    """

    def __init__(self, client: Any = None):
        self._given = client
        self._made: dict[int, Any] = {os.getpid(): client} if client else {}

    def __reduce__(self) -> tuple[Callable[[], Clients], tuple[()]]:
        return shared_clients, ()

    def of_this_process(self) -> Any:
        """Return the client of the process that asks."""
        client = self._made.get(os.getpid())
        return client if client is not None else self._new()

    def _new(self) -> Any:
        with _making_clients:
            process = os.getpid()
            if process not in self._made:
                meta = self._given.meta if self._given is not None else None
                self._made = {process: _make_client(meta)}
            return self._made[process]


def shared_clients() -> Clients:
    """Return the clients of all places that are opened under the same settings of AWS."""
    return _clients_under(settings_of_aws())


@lru_cache(maxsize=8)
def _clients_under(settings: Hashable) -> Clients:
    return Clients()


def settings_of_aws() -> Hashable:
    """Return a value that changes when boto3 would make other clients: who renews credentials gets those."""
    variables = frozenset(item for item in os.environ.items() if item[0].startswith("AWS_"))
    return variables, tuple(_version_of(*file) for file in _SETTINGS)


def _version_of(variable: str, default: str) -> tuple[int, ...]:
    try:
        file = Path(os.environ.get(variable) or default).expanduser().stat()
    except (OSError, ValueError, RuntimeError):  # no file, no path, no home
        return ()
    return file.st_ino, file.st_size, file.st_mtime_ns


def region() -> str | None:
    """Return `AWS_REGION`, which other AWS tools know and boto3 does not; None leaves it to boto3."""
    return os.environ.get("AWS_REGION") or None


def _make_client(given: Any) -> Any:
    try:
        from boto3.session import Session
        from botocore.config import Config
    except ImportError as error:
        raise SMDebugCustomerError(f"Runs on S3 need boto3: {install_command('aws')}") from error
    config = Config(
        retries={"mode": "standard", "max_attempts": 6},
        max_pool_connections=2 * REQUESTS_AT_A_TIME,
        connect_timeout=10,
        read_timeout=60,
        tcp_keepalive=True,
    )
    with translated("s3", "read"):
        # A new session: two threads must not use the default one at once.
        if given is None:
            return Session(region_name=region()).client("s3", config=config)
        return Session().client(
            "s3",
            endpoint_url=given.endpoint_url,
            region_name=given.region_name,
            config=given.config,
        )


def _renew_lock() -> None:
    global _making_clients
    _making_clients = threading.Lock()


_making_clients = threading.Lock()
os.register_at_fork(after_in_child=_renew_lock)  # the thread that held it is not in the child
