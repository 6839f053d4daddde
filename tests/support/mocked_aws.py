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
        with mock_aws(config=config), new_clients_of_s3():
            yield


@contextmanager
def new_clients_of_s3() -> Iterator[None]:
    """Have places in buckets share only clients that are made from now on."""
    from smdebug.storage import s3_clients

    with patch.object(s3_clients, "_clients_under", cache(s3_clients._clients_under.__wrapped__)):
        yield


@contextmanager
def services_read_once() -> Iterator[None]:
    """Have all sessions of boto3 share what its files and folders say of the services.

    moto begins a session for each test, and to read these megabytes again is a fifth of such a test's time.
    """
    from botocore.loaders import JSONFileLoader, Loader

    read, names = _reader(), _names()  # the originals: they are made before the first replacement
    with (
        patch.object(JSONFileLoader, "load_file", lambda _, path: read(path)),
        patch.object(
            Loader,
            "list_available_services",
            lambda loader, type_name: list(names(tuple(loader.search_paths), type_name)),
        ),
    ):
        yield


@cache
def _reader() -> Callable[[str], Any]:
    from botocore.loaders import JSONFileLoader

    return cache(JSONFileLoader().load_file)


@cache
def _names() -> Callable[[tuple[str, ...], str], list[str]]:
    """The names of the services below some folders."""
    from botocore.loaders import Loader

    original = Loader.list_available_services

    @cache
    def names(folders: tuple[str, ...], type_name: str) -> list[str]:
        loader = Loader(include_default_search_paths=False)
        loader.search_paths.extend(folders)
        found: list[str] = original(loader, type_name)
        return found

    return names
