"""The rank according to a library beside the framework."""

import sys
from types import SimpleNamespace

import pytest

from smdebug.saving.process.ranks import by_horovod, by_torch


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


@pytest.mark.parametrize(
    ("available", "initialized", "rank"), [(True, True, (1, 4)), (True, False, None), (False, True, None)]
)
def test_the_rank_comes_from_torch_once_its_processes_know_each_other(
    available, initialized, rank, monkeypatch
):
    distributed = SimpleNamespace(
        is_available=lambda: available,
        is_initialized=lambda: initialized,
        get_rank=lambda: 1,
        get_world_size=lambda: 4,
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    assert by_torch() == rank


def test_without_torch_its_rank_is_not_requested(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    assert by_torch() is None
