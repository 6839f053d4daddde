"""Small runs to judge, and a rule that a person would write for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.rules.made_runs import MadeRun

RULE = """
from smdebug.rules import Finding, Rule


class LossSpike(Rule):
    def __init__(self, base_trial, factor="{factor}"):
        super().__init__(base_trial)
        self.factor = float(factor)
        self.last = None

    def invoke_at_step(self, step):
        {first}
        loss = float(self.base_trial.tensor("loss").reduction_value(step, "mean"))
        if self.last is not None:
            self.checked_value = loss / self.last
            if self.checked_value > self.factor:
                self.findings.append(Finding("loss", "times the last", self.checked_value, self.factor))
        self.last = loss
        return bool(self.findings)
"""


def make_run(place: Path, losses: list[float], *, ends: bool = True) -> Path:
    """Write a run with these losses at steps 0, 10, 20…"""
    run = MadeRun(place)
    for number, loss in enumerate(losses):
        run.save(10 * number, {"loss": np.array([loss], np.float32)})
    if ends:
        run.end()
    return place


def make_runs(folder: Path, number: int) -> Path:
    """Write runs of which every third has a loss that jumps at step 20, by a growing factor."""
    for place in range(number):
        jump = 5.0 + place if place % 3 == 0 else 1.0
        make_run(folder / f"run-{place:02}", [2.0, 1.9, 1.8 * jump, 1.7 * jump])
    return folder


def write_rule(file: Path, factor: float = 4, first: str = "pass") -> str:
    """Write the rule to the file; it executes `first` at every step."""
    file.write_text(RULE.format(factor=factor, first=first), encoding="utf-8")
    return str(file)
