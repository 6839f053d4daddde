"""Shared by the tests of the promises: the run, the default stack, and what was published."""

from __future__ import annotations

from typing import Any

from tests.functions.deployed_settings import settings as stack_settings
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld

RUN = "runs/mnist"
EXPLODING = stack_settings(default_rules=("ExplodingTensor",))


def found_steps(small: SmallWorld) -> list[int]:
    return [detail["step"] for detail in small.details("Rule Evaluation Condition Met")]


def cursor(small: SmallWorld) -> int:
    return small.index.groups.get(RUN, "builtin").cursor


def summaries(small: SmallWorld) -> list[dict[str, Any]]:
    details = small.details("Run State Change")
    return [detail["summary"] for detail in details if detail["summary"]]


def report_every_step(small: SmallWorld) -> None:
    """A rules.json that has each failing step published."""
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "failing", "rule": "ExplodingTensor", "repeat": "every_step"}]}',
    )


def ahead_of_compared_run() -> tuple[SmallWorld, Saver, Saver]:
    """A stack, a run with two steps, and the other one that has only saved the first."""
    small = SmallWorld()
    other = Saver(small.place("before")).begin()
    other.save(0, {"w": 1.0})
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "failing", "rule": "ExplodingTensor"},'
        b'{"name": "same", "rule": "SimilarAcrossRuns", "other_trials": ["s3://runs/before"]}]}',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, {"w": 1.0})
    worker.save(1, {"w": 2.0})
    return small, worker, other
