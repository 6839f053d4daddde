"""A debugger over a step index in memory."""

import pytest

from tests.service.stocked import Stock


@pytest.fixture
def stock() -> Stock:
    return Stock()
