"""Statistics of sharded tensors are those of the whole, on ranks of gloo."""

import json
import math

import pytest
from click.testing import CliRunner

import smdebug.pytorch as smd
from smdebug.cli.runs.tensor_command import command
from smdebug.ui.answering.tensors import at_step
from smdebug_default_rules.tensors import Parameters
from tests.frameworks.pytorch.test_ranks import Ranks

STORIES = "tests.frameworks.pytorch.sharded.stories"
EXACT = ("count", "zeros", "min", "max")
MEANS = ("mean", "abs_mean", "rms", "std")


@pytest.fixture(scope="module")
def ranks():
    started = Ranks()
    yield lambda story, run, number: started.train(story, run, number, module=STORIES)[0][0]
    started.end()


def assert_whole(trial, expected):
    for key, numbers in expected.items():
        step, name = key.split()
        row = trial.statistics(int(step), wholes=True).row(name)
        assert [row[statistic] for statistic in EXACT] == numbers[:4], key
        for statistic, number in zip(MEANS, numbers[4:], strict=True):
            # Parts are measured in float32 where they lie, and combined in float64.
            bound = 1e-6 if statistic == "std" else 4e-7 if name.startswith("up") else 1e-7
            assert math.isclose(row[statistic], number, rel_tol=bound, abs_tol=1e-9), (key, statistic)


@pytest.mark.parametrize(
    ("story", "number"),
    [("over_all", 2), ("over_all", 4), ("hybrid", 4), ("two_dimensions", 4), ("tensor_parallel", 2)],
)
def test_numbers_of_parts_are_combined_to_those_of_the_whole(run, ranks, story, number):
    expected = ranks(story, run, number)
    trial = smd.create_trial(str(run))
    assert len(trial.workers()) == number
    assert_whole(trial, expected)
    assert trial.statistics(1).parts == {}


def test_a_part_that_is_missing_is_said_and_no_number_is_of_the_whole(run, ranks):
    ranks("over_all", run, 4)
    for file in run.rglob("000000000001_worker_2.*"):
        file.unlink()
    trial = smd.create_trial(str(run))
    held = trial.statistics(1, wholes=True)
    # Of six rows the first three ranks hold two each, and the fourth none.
    assert held.parts["Model_first.weight"] == "1 of 4 along dp; 2 of 4 parts are known"
    assert held.row("Model_first.weight")["count"] == 2 * 9
    assert trial.statistics(0).parts == {}
    shown = CliRunner().invoke(command, [str(run), "Model_first.weight"])
    assert "the whole" in shown.stdout
    assert "1 of 4 along dp; 2 of 4 parts are known" in shown.stdout


def test_the_default_plan_knows_wholes_where_all_ranks_save_digests(run, ranks):
    expected = ranks("by_default", run, 2)
    trial = smd.create_trial(str(run))
    assert_whole(trial, {key: numbers for key, numbers in expected.items() if key.startswith("0 ")})
    for step in (0, 1):  # those of a part at every step, so that they can be compared
        assert trial.statistics(step).parts["gradient/Model_first.weight"] == "1 of 2 along dp"
        assert trial.statistics(step).row("gradient/Model_first.weight")["count"] == 27
    assert not (run / "events" / "000000000001" / "000000000001_worker_1.tfevents").exists()
    answer = json.loads(CliRunner().invoke(command, [str(run), "Model_first.weight", "--json"]).stdout)
    assert [(step["count"], step.get("part")) for step in answer["steps"]] == [
        (54, None),
        (27, "1 of 2 along dp"),
    ]
    shown = CliRunner().invoke(command, [str(run), "Model_first.weight", "--step", "0"]).stdout
    assert "Combined from the parts of all workers" in shown
    assert "p50" not in shown
    of_page = at_step(trial, "parameters", "Model_first.weight", 0)["workers"]
    assert {worker: row["count"] for worker, row in of_page.items()} == {"worker_0": 27, "the whole": 54}


def test_a_norm_of_parts_is_none_to_the_rules(run, ranks):
    norms = {}
    for story in ("by_default", "over_all"):
        expected = ranks(story, run / story, 2)
        norms[story] = Parameters.of(smd.create_trial(str(run / story)).observations.judged(0)).gradient_norm
    squares = [n[0] * n[6] ** 2 for key, n in expected.items() if key.startswith("0 gradient/")]
    assert math.isnan(norms["by_default"])
    assert math.isclose(norms["over_all"], math.sqrt(sum(squares)), rel_tol=1e-6)
