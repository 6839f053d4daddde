"""Whatever fails inside smdebug, the training continues, and ends as it would alone."""

import logging
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
import smdebug.pytorch as smd
from smdebug.logger import get_logger

LIBRARY = "/python/smdebug/"
# What PyTorch calls itself. They lead to what is guarded, and do nothing before.
DOORS = {
    *("__call__", "_after_layer", "_after_accumulation", "_before_step", "_before_any_forward"),
    *("before_optimizer", "after_optimizer", "_guarded", "_contained", "before_forward", "tell"),
    *(
        "optimizer_made",
        "guarded",
        "loss_called",
        "in_backward",
        "are_awaited",
        "__reduce__",
        "saves_now",
        "skip",
        "after_step",
    ),
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


class Failing:
    """Fails the `at`-th call of a function of the library that this thread makes; counts the others."""

    def __init__(self, at=None):
        self.at, self.calls = at, 0

    def __enter__(self):
        sys.settrace(self._called)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _called(self, frame, event, argument):
        code = frame.f_code
        if LIBRARY in code.co_filename and self._is_inside(code):
            self.calls += 1
            if self.calls == self.at:
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


def test_a_call_that_fails_is_logged_and_the_training_is_the_same(tmp_path, logged):
    alone = train()
    for place in ("first", "counted"):  # the first one calls more
        with smdebug.start(tmp_path / place), Failing() as counted:
            train()
    assert counted.calls > 1000
    for at in range(1, int(0.95 * counted.calls), counted.calls // 60):
        logged.clear()
        with smdebug.start(tmp_path / f"run-{at}"), Failing(at) as failing:
            watched = train()
        assert failing.calls >= at
        assert all(torch.equal(*pair) for pair in zip(watched, alone, strict=True)), at


def test_after_an_error_the_next_start_watches_again(tmp_path, logged, monkeypatch):
    from smdebug.pytorch.unchanged import _Watcher

    with smdebug.start(tmp_path / "failed"), monkeypatch.context() as broken:
        broken.setattr(_Watcher, "_watch", lambda *_, **__: 1 / 0)
        train()
    assert [
        message for message in logged if "not watched, but goes on: ZeroDivisionError" in message
    ]
    with smdebug.start(tmp_path / "next"):
        train()
    assert len(smd.create_trial(str(tmp_path / "next")).series("loss")) == 8
