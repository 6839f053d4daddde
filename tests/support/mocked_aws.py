"""AWS in the memory of this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""They open nothing."""


@contextmanager
def mocked_aws(region: str = "us-east-1", **config: Any) -> Iterator[None]:
    """Have moto answer boto3, whatever the developer's own environment says of AWS."""
    from moto import mock_aws

    with patch.dict(os.environ, {**CREDENTIALS, "AWS_DEFAULT_REGION": region}), services_read_once():
        for name in ("AWS_PROFILE", "AWS_REGION"):
            os.environ.pop(name, None)
        with mock_aws(config=config):
            yield


@contextmanager
def services_read_once() -> Iterator[None]:
    """Have all sessions of boto3 share what its files say of the services.

    moto begins a session for each test, and to read these megabytes again is a fifth of such a test's time.
    """
    from botocore.loaders import JSONFileLoader

    read = _reader()  # the original: it is made before the first replacement
    with patch.object(JSONFileLoader, "load_file", lambda _, path: read(path)):
        yield


@cache
def _reader() -> Callable[[str], Any]:
    from botocore.loaders import JSONFileLoader

    return cache(JSONFileLoader().load_file)
