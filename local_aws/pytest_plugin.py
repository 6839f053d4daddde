"""Fixtures for tests of rules on the whole debugger: `pytest_plugins = ["local_aws.pytest_plugin"]`.

The stack starts once per test session, with the first test that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest

from local_aws.aws import LocalAws
from local_aws.debugger import LocalDebugger


@pytest.fixture(scope="session")
def local_aws() -> Iterator[LocalAws]:
    """AWS on this machine, with the debugger deployed."""
    with LocalAws() as aws:
        yield aws


@pytest.fixture
def local_debugger(local_aws: LocalAws, request: pytest.FixtureRequest) -> Iterator[LocalDebugger]:
    """The debugger, limited to the runs of this test; its hooks and trials use the local bucket."""
    prefix = f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())[:60]}-{uuid4().hex[:6]}"
    with local_aws.as_default():
        yield LocalDebugger(local_aws, prefix)
