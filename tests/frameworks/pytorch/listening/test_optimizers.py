"""The optimizers of the process are sought once, and noted when they are made after that."""

import copy
import gc
import pickle

import pytest
import torch
from torch import nn

from smdebug.pytorch.listening.optimizers import _Optimizers


@pytest.fixture
def optimizers(monkeypatch):
    """A register of its own, which has asked nothing yet; and PyTorch as it was, afterwards."""
    monkeypatch.setattr(torch.optim.Optimizer, "__init__", torch.optim.Optimizer.__init__)
    monkeypatch.setattr(torch.optim.Optimizer, "__setstate__", torch.optim.Optimizer.__setstate__)
    return _Optimizers()


@pytest.fixture
def searches(monkeypatch):
    """How often all objects of the process were looked at."""
    found, look = [], gc.get_objects
    monkeypatch.setattr(gc, "get_objects", lambda: found.append(1) or look())
    return found


def made(kind=torch.optim.SGD):
    return kind(nn.Linear(2, 2).parameters(), lr=0.1)


def knows(optimizers, *expected):
    known = optimizers.all()
    return all(any(each is found for found in known) for each in expected)


def test_what_exists_is_sought_once_and_what_follows_is_noted(optimizers, searches):
    before = made()
    assert knows(optimizers, before)
    after = made(torch.optim.AdamW)
    copied, restored = copy.deepcopy(after), pickle.loads(pickle.dumps(before))
    assert knows(optimizers, before, after, copied, restored)
    assert len(searches) == 1


def test_an_optimizer_that_is_gone_is_known_no_longer(optimizers):
    gone = made()
    assert knows(optimizers, gone)
    places = [id(gone)]
    del gone
    gc.collect()
    assert not [each for each in optimizers.all() if id(each) in places]


def test_one_that_could_not_be_made_is_not_known(optimizers):
    optimizers.all()
    before = len(optimizers.all())
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD([], lr=0.1)
    assert len(optimizers.all()) == before


def test_a_listener_hears_of_those_that_exist_and_of_those_to_come(optimizers):
    heard, before = [], made()
    optimizers.tell(heard.append)
    after = made()
    assert any(each is before for each in heard)
    assert heard[-1] is after
