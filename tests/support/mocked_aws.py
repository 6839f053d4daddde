"""AWS in the memory of this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""They open nothing."""


@contextmanager
def mocked_aws(region: str = "us-east-1") -> Iterator[None]:
    """Have moto answer boto3, whatever the developer's own environment says of AWS."""
    from moto import mock_aws

    with patch.dict(os.environ, {**CREDENTIALS, "AWS_DEFAULT_REGION": region}):
        for name in ("AWS_PROFILE", "AWS_REGION"):
            os.environ.pop(name, None)
        with mock_aws():
            yield
