"""The rank according to a library beside the framework."""

import sys
from types import SimpleNamespace

import pytest

from smdebug.saving.process.ranks import by_horovod


@pytest.mark.parametrize("framework", ["torch", "tensorflow", "tensorflow.keras", "mxnet"])
def test_the_rank_comes_from_horovod_once_it_is_started(framework, monkeypatch):
    started = []
    horovod = SimpleNamespace(is_initialized=lambda: bool(started), rank=lambda: 2, size=lambda: 4)
    monkeypatch.setitem(sys.modules, f"horovod.{framework}", horovod)
    assert by_horovod() is None
    started.append(True)
    assert by_horovod() == (2, 4)


def test_without_horovod_its_rank_is_not_requested():
    assert by_horovod() is None
