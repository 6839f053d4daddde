"""Trainings of two and three ranks over gloo: what each writes when it makes no progress."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import smdebug.pytorch as smd
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.runs.live_run import LiveRun
from smdebug_default_rules.ranks import gone
from tests.frameworks.pytorch.standing.stories import HANGS_AT

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of all runs, and the exit code of each rank; None for one that hung."""
    folder = tmp_path_factory.mktemp("standing")
    paths = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules", ROOT]
    settings = {"SMDEBUG_STALL_SECONDS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.frameworks.pytorch.standing.stories", str(folder)],
        cwd=ROOT,
        env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdout=subprocess.PIPE,
        text=True,
        timeout=500,
        check=True,
    )
    return folder, json.loads(done.stdout)


def stalls_of(trained, story):
    return smd.create_trial(str(trained[0] / story)).stalls()


def test_a_rank_that_sleeps_in_its_data_and_those_that_wait_for_it(trained):
    stalls = stalls_of(trained, "sleeps")
    assert {worker: stall.state for worker, stall in stalls.items()} == dict.fromkeys(
        ["worker_0", "worker_1", "worker_2"], "stands"
    )
    sleeping = stalls["worker_1"]
    assert (sleeping.step, sleeping.phase) == (HANGS_AT - 1, "data")
    assert sleeping.stack[0].startswith("__main__:sleeping_in_data:")
    assert sleeping.processor is None or sleeping.processor < 0.2
    assert {stalls[other].phase for other in ("worker_0", "worker_2")} == {"backward"}


def test_a_rank_that_runs_no_python_has_no_file(trained):
    assert sorted(stalls_of(trained, "is_stopped")) == ["worker_0", "worker_2"]


def test_ranks_in_different_collectives(trained):
    stalls = stalls_of(trained, "skips_a_collective")
    assert "broadcast" in stalls["worker_0"].stack[0]
    assert "barrier" in stalls["worker_1"].stack[0]


@pytest.mark.parametrize("story", ["evaluates", "saves"])
def test_ranks_that_went_on_say_so(trained, story):
    assert set(trained[1][story].values()) == {0}
    assert {stall.state for stall in stalls_of(trained, story).values()} == {"went on"}


def test_a_rank_that_is_killed_where_the_others_raise(trained):
    codes = trained[1]["is_killed"]
    assert codes["1"] == -9
    assert not [stall for stall in stalls_of(trained, "is_killed").values() if stall.is_open]


def test_a_first_step_may_be_slow(trained):
    assert not stalls_of(trained, "begins_slowly")


def test_nobody_stands_at_the_end_of_a_training(trained):
    assert {stall.state for stall in stalls_of(trained, "ends").values()} <= {"ended"}


def found(trained, story):
    """The titles of what MissingRank finds, in the saved run and in one that is followed while it trains."""
    place = str(trained[0] / story)
    (saved,) = evaluate(place, ["MissingRank"])
    followed = LiveRun(place, rules=["MissingRank"])
    for _ in range(3):
        followed.advance()
    while followed.is_behind:
        followed.advance()
    followed.advance()
    titles = [each["title"] for at in saved.found for each in at.findings]
    live = [each["title"] for r in followed.following.results for at in r.found for each in at.findings]
    assert live == titles
    return titles


@pytest.mark.parametrize(
    ("story", "titles"),
    [
        ("sleeps", ["Rank worker_1 stands while the others wait"]),
        ("is_stopped", ["Rank worker_1 has died or hangs"]),
        ("is_killed", ["Rank worker_1 was killed"]),
        ("raises", []),
        ("skips_a_collective", ["Rank worker_1 stands while the others wait"]),
        ("evaluates", []),
        ("saves", []),
        ("begins_slowly", []),
        ("ends", []),
    ],
)
def test_the_rank_is_named_that_the_others_wait_for(trained, story, titles, monkeypatch):
    monkeypatch.setattr(gone, "PATIENCE", 0.0)  # all processes have ended
    assert found(trained, story) == titles
