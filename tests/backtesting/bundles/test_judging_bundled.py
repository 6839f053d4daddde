"""Verdicts on a run with a bundle are those without one, to the byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest

from smdebug.backtesting.bundles.bundle_file import bundle_name
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.judging import Judged, judge
from smdebug.backtesting.question import Question
from smdebug.files.names import END_MARKER, event_key, index_key
from smdebug.storage import open_storage
from tests.backtesting.many_runs import write_rule
from tests.rules.made_runs import MadeRun
from tests.support.mocked_aws import mocked_aws

BUNDLES = "s3://runs/backtests/bundles"
STEPS = 20


@pytest.fixture(scope="module", autouse=True)
def _aws() -> Iterator[None]:
    with mocked_aws():
        boto3.client("s3").create_bucket(Bucket="runs")
        yield


def save(made: MadeRun, step: int) -> None:
    """Save a step of two workers: the loss jumps at the end, and a gradient vanishes once."""
    random = np.random.default_rng(step)
    for rank in range(2):
        loss = np.array([2.0 if step < STEPS - 2 else 30.0], np.float32)
        gradient = random.normal(size=20).astype(np.float32) * (0 if step == 5 else 1)
        made.save(step, {"loss": loss, "gradient/fc": gradient}, rank=rank)


@pytest.fixture
def run(request: pytest.FixtureRequest) -> str:
    place = f"s3://runs/team/{request.node.name}"
    made = MadeRun(place, workers=2)
    for step in range(STEPS):
        save(made, step)
    made.end()
    return place


def judged(run: str, question: Question, **more: Any) -> Judged:
    return judge(replace(question, **more), FoundRun(run, run.rpartition("/")[2], run))


def text_of(verdict: Judged) -> str:
    """Return all of a verdict but what differs each time."""
    rows = [replace(row, seconds=0.0) for row in verdict.rows]
    return json.dumps(replace(verdict, rows=tuple(rows), bundle_problem="").to_dict())


def with_own_code(folder: Path) -> Question:
    file, old = folder / "rule.py", folder / "old.py"
    return Question(({"rule": "LossSpike", "parameters": {}},), write_rule(file), write_rule(old, factor=50))


@pytest.mark.parametrize(
    "asked", [lambda _: Question(("all",)), lambda _: Question(("default",)), with_own_code]
)
def test_findings_are_the_same_without_a_bundle_with_the_first_one_and_with_a_later_one(
    run: str, tmp_path: Path, asked: Callable[[Path], Question]
):
    question = asked(tmp_path)
    without = text_of(judged(run, question))
    assert "IssuesFound" in without
    first, later = (judged(run, question, bundles=BUNDLES, keeps_bundles=True) for _ in range(2))
    assert (text_of(first), first.bundle_problem) == (without, "")
    assert (text_of(later), later.bundle_problem) == (without, "")
    assert open_storage(BUNDLES).exists(bundle_name(run))


def overwrite(run: str) -> None:
    """Change an event file in the middle, of which the run's identity says nothing."""
    storage = open_storage(run)
    storage.write(event_key(5, "worker_0"), storage.read(event_key(6, "worker_0")))


def grow(run: str) -> None:
    open_storage(run).delete(END_MARKER)
    save(MadeRun(run, workers=2), STEPS)


def damage(run: str) -> None:
    open_storage(run).write(event_key(10, "worker_0"), b"damaged")
    open_storage(run).write(index_key(12, "worker_1"), b"{")


def lose(run: str) -> None:
    open_storage(run).delete(event_key(10, "worker_1"))


@pytest.mark.parametrize("change", [overwrite, grow, damage, lose])
def test_a_run_that_has_changed_is_judged_as_it_is_now(run: str, change: Callable[[str], None]):
    question = Question(("all",))
    before = text_of(judged(run, question, bundles=BUNDLES, keeps_bundles=True))
    change(run)
    without = text_of(judged(run, question))
    assert without != before
    assert text_of(judged(run, question, bundles=BUNDLES, keeps_bundles=True)) == without


def test_a_run_with_a_damaged_bundle_is_judged_without_it_and_the_verdict_says_so(run: str):
    question = Question(("default",))
    without = text_of(judged(run, question))
    open_storage(BUNDLES).write(bundle_name(run), b"PK nothing")
    verdict = judged(run, question, bundles=BUNDLES)
    assert text_of(verdict) == without
    assert "has no end" in verdict.bundle_problem
    assert open_storage(BUNDLES).read(bundle_name(run)) == b"PK nothing"


def test_runs_that_are_none_have_the_row_that_they_have_without_bundles():
    for run in ("s3://runs/nothing", "s3://no-such-bucket/run"):
        question = Question(("default",))
        assert text_of(judged(run, question, bundles=BUNDLES)) == text_of(judged(run, question))
