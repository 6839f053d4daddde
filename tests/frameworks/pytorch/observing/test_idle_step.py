"""A step of which nothing is saved does little: it is counted, and its loss and learning rate are kept."""

import json
import os
import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug.pytorch as smd
from smdebug.pytorch.observing.accumulation import Accumulation
from smdebug.trials import create_trial

LIBRARY = "/python/smdebug/"
CALLS = 13
"""How many Python functions of the library such a step may call. Each costs about 2 us."""


class Training:
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.losses = []

    def step(self):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(torch.randn(3, 4)), torch.tensor([0, 1, 1]))
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def calls_of(act):
    """The functions of the library that are called."""
    found = []

    def called(frame, event, argument):
        if event == "call" and LIBRARY in frame.f_code.co_filename:
            found.append(frame.f_code.co_qualname)

    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(None)
    return found


def trained(folder):
    """Train for 20 steps; return what step 15 called, and the losses."""
    training = Training()
    with smd.Hook(folder) as hook:
        hook.register_module(training.model)
        hook.set_mode(smd.modes.TRAIN)
        for _ in range(15):
            training.step()
        calls = calls_of(training.step)
        for _ in range(3):
            training.step()
        training.optimizer.param_groups[0]["lr"] = 0.25
        training.step()
    return {"calls": calls, "losses": training.losses}


def test_a_step_with_nothing_due_makes_few_calls_and_keeps_its_loss(tmp_path):
    program = f"import json, sys; from {__name__} import trained; print(json.dumps(trained(sys.argv[1])))"
    done = subprocess.run(  # in a process where nothing else is watched
        [sys.executable, "-c", program, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert 0 < len(found["calls"]) <= CALLS, found["calls"]
    trial = create_trial(tmp_path / "run")
    assert trial.series("loss").values.tolist() == found["losses"]
    rates = trial.series("learning_rate/0/0")
    assert (rates.steps[-1], rates.values[-1]) == (19, 0.25)


def test_no_parameter_has_a_callback_where_an_optimizer_is_known(tmp_path):
    training = Training()
    with smd.Hook(tmp_path / "run") as hook:
        hook.register_module(training.model)
        training.step()
    assert all(p._post_accumulate_grad_hooks is None for p in training.model.parameters())


def test_updates_that_become_rarer_are_noticed():
    accumulation = Accumulation()
    for step in [*range(20), 23, 27]:
        accumulation.updated(step)
    assert accumulation.batches == 4
    for step in (28, 29, 30):
        accumulation.updated(step)
    assert accumulation.batches == 1
    accumulation.updated(30)  # a second update within the step
    accumulation.updated(33)
    assert accumulation.batches == 3
