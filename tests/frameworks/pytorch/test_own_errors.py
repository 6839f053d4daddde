"""Whatever fails inside smdebug, the training continues, and ends as it would alone."""

import gc
import logging
import sys
from collections import Counter
from weakref import WeakSet, WeakValueDictionary

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
import smdebug.pytorch as smd
from smdebug.exceptions import SMDebugError
from smdebug.logger import get_logger
from smdebug.pytorch import unchanged
from smdebug.pytorch.listening import optimizers

PACKAGE = "/python/smdebug/pytorch/"  # all else is called from there
# What PyTorch calls itself. They lead to what is guarded, and do nothing before.
DOORS = {
    "__call__",
    "_after_layer",
    "_after_accumulation",
    "_before_step",
    "_before_any_forward",
    "before_forward",
    "before_update",
    "after_optimizer",
    "after_step",
    "_with_gradients",
    "tell",
    "optimizer_made",
    "optimizer_restored",
    "loss_called",
    "in_backward",
    "are_awaited",
    "_guarded",
    "_contained",
}


def train():
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Dropout(0.1), nn.Linear(6, 3))
    optimizer, criterion = torch.optim.Adam(model.parameters()), nn.CrossEntropyLoss()
    for step in range(6):
        model.train()
        inputs, labels = torch.randn(5, 8), torch.randint(0, 3, (5,))
        loss_of = criterion if step % 2 else F.cross_entropy
        optimizer.zero_grad()
        loss_of(model(inputs), labels).backward()
        optimizer.step()
        if step in (2, 4):
            model.eval()
            with torch.no_grad():
                loss_of(model(inputs), labels)
    return [*model.state_dict().values(), torch.randn(2)]


class Failure(Exception):
    """An error that no code expects."""


class Calls:
    """Counts the calls of each function of the package that this thread makes; fails one of them."""

    def __init__(self, fails=None, at=0):
        self.fails, self.at, self.counts = fails, at, Counter()

    def __enter__(self):
        sys.settrace(self._called)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _called(self, frame, event, argument):
        code = frame.f_code
        if PACKAGE in code.co_filename and self._is_inside(code):
            self.counts[code] += 1
            if code is self.fails and self.counts[code] == self.at:
                raise Failure

    def _is_inside(self, code):
        is_generator = code.co_flags & 0x20  # closed generators cannot raise to anybody
        return not is_generator and code.co_name not in DOORS and "watched_" not in code.co_name


@pytest.fixture
def logged():
    handler, messages = logging.Handler(), []
    handler.emit = lambda record: messages.append(record.getMessage())
    get_logger().addHandler(handler)
    yield messages
    get_logger().removeHandler(handler)


@pytest.fixture
def few_objects(monkeypatch):
    """Each run looks for optimizers among those that exist, and for what else was replaced among all objects.

    An optimizer that an earlier test has left is looked at, too, and more functions are called. Of the
    objects 300,000 are those of imported modules.
    """
    monkeypatch.setattr(optimizers._OPTIMIZERS, "_known", WeakValueDictionary())
    for watcher in unchanged.watchers:
        monkeypatch.setattr(watcher, "_optimizers", WeakSet())
    gc.freeze()  # the collector lists them no longer
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
def test_whatever_function_fails_the_training_is_the_same(tmp_path):
    alone = train()
    for place in ("first", "counted"):  # the first one calls more
        with smdebug.start(tmp_path / place), Calls() as counted:
            train()
    assert len(counted.counts) > 200
    given_up = []
    for number, (code, calls) in enumerate(counted.counts.items()):
        place = tmp_path / f"run-{number}"
        with smdebug.start(place), Calls(code, (calls + 1) // 2):
            watched = train()
        same = all(torch.equal(*pair) for pair in zip(watched, alone, strict=True))
        assert same, code.co_qualname
        if calls >= 8 and not goes_on(place):  # else it makes something that all else needs
            given_up.append(code.co_qualname)
    assert len(given_up) <= 10, " ".join(given_up)  # what begins a step, and what finds the model


def goes_on(place):
    """Whether losses were kept to the end, although something failed in the middle."""
    try:
        return smd.create_trial(str(place), wait_seconds=0).series("loss").steps[-1:].tolist() == [5]
    except SMDebugError:
        return False


def test_a_scaler_that_is_switched_off_is_no_error(tmp_path, logged):
    # As scripts have it that do without where there is no GPU; PyTorch before 2.3 has it under CUDA alone.
    made = torch.amp.GradScaler("cpu", enabled=False) if hasattr(torch.amp, "GradScaler") else None
    scaler = made or torch.cuda.amp.GradScaler(enabled=False)
    with smdebug.start(tmp_path / "run"):
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(12):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(4, 3)).square().mean()).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
    assert len(smd.create_trial(str(tmp_path / "run")).series("loss")) == 12
    assert not [message for message in logged if "leaves out" in message or "no longer" in message]


def test_an_object_that_lacks_an_attribute_costs_one_fact_and_is_named_once(tmp_path, logged, monkeypatch):
    monkeypatch.setattr("smdebug.pytorch.observing.facts.mode_facts", lambda *_: torch.no_such_name)
    with smdebug.start(tmp_path / "run"):
        train()
    trial = smd.create_trial(str(tmp_path / "run"))
    assert len(trial.series("loss")) == 8
    assert trial.statistics(4).names
    assert len([message for message in logged if "smdebug leaves out" in message]) == 1


def test_after_an_error_the_next_start_watches_again(tmp_path, logged, monkeypatch):
    from smdebug.pytorch.unchanged import _Watcher

    with smdebug.start(tmp_path / "failed"), monkeypatch.context() as broken:
        broken.setattr(_Watcher, "_watch", lambda *_, **__: 1 / 0)
        train()
    assert [message for message in logged if "not watched, but goes on: ZeroDivisionError" in message]
    with smdebug.start(tmp_path / "next"):
        train()
    assert len(smd.create_trial(str(tmp_path / "next")).series("loss")) == 8
