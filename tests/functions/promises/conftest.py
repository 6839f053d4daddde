"""A stack in memory with one default rule."""

from __future__ import annotations

import pytest

from tests.functions.promises.runs import EXPLODING
from tests.functions.small_world import SmallWorld


@pytest.fixture
def small() -> SmallWorld:
    return SmallWorld(EXPLODING)
