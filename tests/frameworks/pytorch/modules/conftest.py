"""What tests of modules that are called beside the trained model have in common."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def nothing_was_compiled(monkeypatch):
    """Forget what other tests have compiled in this process: in one that has, nothing is watched."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        for kind in ("frames", "stats"):
            monkeypatch.delitem(dynamo.counters, kind, raising=False)
