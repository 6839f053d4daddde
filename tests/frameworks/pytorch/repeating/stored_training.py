"""A small training with places for code that changes what it stores, and what the rule finds in it."""

import numpy as np
import torch
from torch import nn

import smdebug.pytorch as smd
from smdebug import modes
from smdebug_default_rules.values.computed_twice import ComputedTwice

CHECKED = (1, 2, 3, 5, 10, 20)
"""The steps that are computed twice."""
AT = 20
STEPS = 22


def plain():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 2))


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


class Training:
    """A training with a place for code between its steps, and one before its updates."""

    def __init__(self, make=plain, optimizer=adam):
        torch.manual_seed(0)
        self.model = make()
        self.optimizer = optimizer(self.model)
        self.random = np.random.default_rng(0)
        self.kept = {}

    def between(self, step):
        """Called between two steps."""

    def before_update(self, step):
        """Called between the backward pass and the update."""

    def update(self, loss):
        self.optimizer.zero_grad()
        loss().backward()
        self.before_update(self.step)
        self.optimizer.step()

    def run(self, place, every=5, steps=STEPS):
        hook = smd.Hook(str(place), **({} if every is None else {"compute_twice": every}))
        hook.register_module(self.model)
        hook.follow_training_flag()
        for self.step in range(steps):
            rows = torch.randn(16, 8)
            self.between(self.step)
            self.update(
                lambda rows=rows: nn.functional.cross_entropy(self.model(rows), (rows.sum(1) > 0).long())
            )
        hook.close()
        return [each.clone() for each in self.model.state_dict().values()]


def noted(place):
    trial = smd.create_trial(str(place))
    found = {step: trial.observations.at(step).facts.get("computed_twice") for step in trial.steps()}
    return {step: fact for step, fact in found.items() if fact is not None}


def findings(place):
    trial = smd.create_trial(str(place))
    rule = ComputedTwice(trial)
    return [
        each for step in trial.steps(mode=modes.TRAIN) if rule.invoke_at_step(step) for each in rule.findings
    ]


def in_memory(tensor):
    """The values of a tensor, where PyTorch does not see what becomes of them."""
    return tensor.detach().numpy()


def flip(tensor, place, bit=26):
    """Change one bit of one value."""
    in_memory(tensor).reshape(-1).view(np.uint32)[place] ^= np.uint32(1 << bit)
