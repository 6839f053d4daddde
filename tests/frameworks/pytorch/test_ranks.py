"""Two processes that train together, over gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import smdebug.pytorch as smd
from smdebug.cli.runs.inspect_command import command as inspect_command
from smdebug.cli.runs.tensor_command import command
from smdebug_default_rules.catalog import CATALOG
from tests.frameworks.pytorch.training import Net, batch, hook_in, since
from tests.smdebug_default_rules.made_runs import findings_of
from tests.support.answers import problems_of

ROOT = Path(__file__).parents[3]


class Ranks:
    """A process that forks the ranks of each story."""

    def __init__(self):
        paths = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules", ROOT]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.frameworks.pytorch.rank"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        )

    def train(self, story, run, ranks=2, **more):
        """Run the story in so many processes; return the JSON that each printed, and all of their output."""
        run.parent.mkdir(parents=True, exist_ok=True)
        outputs = [run.parent / f"rank-{rank}.txt" for rank in range(ranks)]
        asked = {"story": story, "run": str(run), "outputs": [*map(str, outputs)], **more}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        codes = self._process.stdout.readline()
        output = [path.read_text() if path.exists() else "" for path in outputs]
        assert json.loads(codes) == [0] * ranks, output
        printed = [
            {k: v for line in text.splitlines() if line.startswith("{") for k, v in json.loads(line).items()}
            for text in output
        ]
        return printed, "".join(output)

    def end(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def two_ranks():
    ranks = Ranks()
    yield ranks.train
    ranks.end()


def test_every_worker_saves_its_own_and_the_gradients_that_all_share(run, two_ranks):
    printed, _ = two_ranks("all_workers", run)
    trial = smd.create_trial(str(run))
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.steps() == [0, 1, 2]
    assert trial.loaded_all_steps
    gradient = trial.tensor("gradient/Net_fc1.weight")
    for rank, worker in enumerate(trial.workers()):
        for step in range(3):
            saved = gradient.value(step, worker=worker)
            np.testing.assert_array_equal(saved, np.float32(printed[rank]["used"][step]))
    assert printed[0] == printed[1]
    losses = [trial.tensor("CrossEntropyLoss_output_0").value(1, worker=w) for w in trial.workers()]
    assert losses[0] != losses[1]


def test_by_default_the_first_worker_saves_tensors_and_the_other_digests(run, two_ranks):
    two_ranks("one_worker", run)
    trial = smd.create_trial(str(run))
    assert trial.workers() == ["worker_0"]
    assert trial.num_workers == 1
    assert trial.has_tensor("relu_output_0")
    assert trial.tensor("relu_output_0").workers(0) == ["worker_0"]
    assert sorted(trial.observations.roots(0)) == ["worker_0", "worker_1"]
    assert trial.observations.differing(0) == []  # in step, and made from one seed


def test_ranks_have_the_same_results_with_and_without_the_hook(run, two_ranks):
    printed, _ = two_ranks("same_results", run)
    assert printed == [{"same": True}, {"same": True}]


def test_all_ranks_stop_after_the_same_step(run, two_ranks):
    printed, _ = two_ranks("stop", run)
    assert printed[0]["stopped"] == printed[1]["stopped"]
    assert printed[0]["stopped"] % 2 == 0
    assert smd.create_trial(str(run)).loaded_all_steps


def test_nobody_stops_where_a_rank_has_no_hook_to_stop_it(run, two_ranks):
    printed, output = two_ranks("stop_without_others", run)
    assert printed == [{"steps": 8}, {"steps": 8}]
    assert "only 1 of 2 processes have a hook" in output


@since("2.6", "fully_shard() for everybody")
def test_what_is_sharded_is_saved_as_the_shard_it_is_and_says_so(run, two_ranks):
    printed, output = two_ranks("shards", run)
    trial = smd.create_trial(str(run))
    weight = trial.tensor("Net_fc1.weight")
    shards = [weight.value(0, worker=worker) for worker in trial.workers()]
    assert [shard.shape for shard in shards] == [(2, 8), (2, 8)]
    torch.manual_seed(0)
    np.testing.assert_array_equal(np.concatenate(shards), Net().fc1.weight.detach())
    gradient = trial.tensor("gradient/Net_fc1.weight")
    for rank, worker in enumerate(trial.workers()):
        for step in range(3):
            found = gradient.value(step, worker=worker)
            np.testing.assert_array_equal(found, np.float32(printed[rank]["used"][step]))
    assert "(2, 8) of (4, 8)" in output


@since("2.2", "FullyShardedDataParallel on the CPU")
def test_what_is_flattened_as_well_is_saved_as_it_is_held_and_says_so(run, two_ranks):
    _, output = two_ranks("flat_shards", run)
    trial = smd.create_trial(str(run))
    weight = trial.tensor("Net_fc1.weight")
    holding = [worker for worker in trial.workers() if worker in weight.workers(0)]
    parts = [weight.value(0, worker=worker) for worker in holding]
    torch.manual_seed(0)
    np.testing.assert_array_equal(np.concatenate(parts), Net().fc1.weight.detach().reshape(-1))
    assert trial.tensor("gradient/Net_fc1.weight").steps() == [0, 1, 2]
    assert output.count("FullyShardedDataParallel): each saves") == 2  # each rank once


def test_copies_that_are_synchronised_agree_and_train_on_batches_of_their_own(run, two_ranks):
    two_ranks("compared", run)
    trial = smd.create_trial(str(run))
    observed = trial.observations
    assert trial.steps() == [*range(11), 11]  # the last step holds the losses since
    assert observed.replica_steps() == [0, 10]
    assert observed.expected_workers == 2
    assert observed.differing(0) == observed.differing(10) == []
    assert [found.workers for found in observed.differing(10, kind="inputs")] == [("worker_1",)]
    assert trial.loaded_all_steps


def test_copies_are_compared_at_the_same_steps_where_the_first_rank_alone_evaluates(run, two_ranks):
    two_ranks("compared_while_one_evaluates", run)
    trial = smd.create_trial(str(run))
    observed = trial.observations
    assert list(trial.series("loss").of(smd.modes.TRAIN).steps) == list(range(12))
    assert list(trial.series("loss").of(smd.modes.EVAL).steps) == [4, 9]
    assert trial.mode(10) is smd.modes.EVAL  # of the first rank; the other one trains
    assert observed.replica_steps() == [0, 10]
    assert observed.differing(0) == observed.differing(10) == []
    assert trial.loaded_all_steps


def test_copies_that_nobody_synchronises_differ_from_the_second_step_on(run, two_ranks):
    two_ranks("not_synchronised", run)
    observed = smd.create_trial(str(run)).observations
    assert observed.differing(0) == []
    drifted = {found.name for found in observed.differing(10)}
    assert drifted == {f"Net_{layer}.{part}" for layer in ("fc1", "fc2") for part in ("weight", "bias")}


@since("2.6", "fully_shard() for everybody")
def test_shards_are_not_copies_to_be_compared(run, two_ranks):
    two_ranks("compared_shards", run)
    observed = smd.create_trial(str(run)).observations
    assert {frozenset(roots) for roots in observed.roots(0).values()} == {frozenset({"parts", "inputs"})}
    assert observed.differing(0) == []


def found_by(rule, run):
    """What a default rule says of the run: title, tensor and step of each finding."""
    trial = smd.create_trial(str(run))
    return [
        (finding.title, finding.tensor, step)
        for step, finding in findings_of(CATALOG[rule].load()(trial), trial.steps())
    ]


@since("2.6", "fully_shard() for everybody")
def test_the_mesh_says_which_part_a_rank_holds_and_which_rows_it_gets(run, two_ranks):
    two_ranks("compared_shards", run)
    held = smd.create_trial(str(run)).observations.parts(0)
    assert [held[worker].rows for worker in sorted(held)] == [(("dimension 0", rank),) for rank in (0, 1)]
    weights = [held[worker].parts["Net_fc1.weight"] for worker in sorted(held)]
    assert [part.place for part in weights] == [(("dimension 0", 0),), (("dimension 0", 1),)]
    assert weights[0].digest != weights[1].digest
    assert found_by("RanksAlike", run) == found_by("ReplicasDiffer", run) == []


@since("2.6", "DTensor for everybody")
def test_shards_that_begin_alike_are_found_and_those_that_do_not_pass(run, two_ranks):
    two_ranks("shards_drawn_alike", run)
    title = "The shards of a parameter begin alike"
    assert found_by("RanksAlike", run) == [(title, "OfParts_weight", 0)]
    apart = run.parent / "apart"
    two_ranks("shards_drawn_apart", apart)
    assert found_by("RanksAlike", apart) == found_by("ReplicasDiffer", apart) == []


@since("2.6", "DTensor for everybody")
def test_copies_on_a_mesh_that_begin_apart_are_found_at_once(run, two_ranks):
    two_ranks("copies_drawn_apart", run)
    found = found_by("ReplicasDiffer", run)
    assert found[0] == ("Copies of a shard differ between the ranks", "OfParts_weight", 0)


@since("2.6", "fully_shard() for everybody")
def test_ranks_of_shards_that_read_the_same_rows_are_found(run, two_ranks):
    two_ranks("shards_of_the_same_rows", run)
    ((_, tensor, step),) = found_by("RanksAlike", run)
    assert (tensor, step) == ("Net_input_0", 10)


@since("2.6", "fully_shard() for everybody")
def test_sharded_trainings_are_the_same_and_the_plan_measures_the_part_of_a_rank(run, two_ranks):
    printed, output = two_ranks("watched_shards", run)
    assert printed == [{"shards": True, "flat": True}] * 2
    for kind, held in {"shards": 4 * 8 / 2, "flat": (4 * 8 + 4 + 3 * 4 + 3 + 1) / 2}.items():
        trial = smd.create_trial(str(run / kind))
        assert trial.steps() == list(range(12))
        assert len(trial.series("loss")) == 12
        for tensors in ("parameters", "gradients", "updates"):
            counts = trial.statistics(10, kind=tensors).column("count")
            assert counts[0] == held, (kind, tensors)
    assert output.count("each saves its own part, here one of shape (2, 8) of (4, 8)") == 1
    assert output.count("(FullyShardedDataParallel): each saves the numbers it holds") == 1
    of_a_part = (
        "The tensor is sharded: numbers of a part are of worker_0's part, 1 of 2 along dimension 0, not of"
    )
    for name, is_of_a_part in {
        "Net_fc1.weight": True,
        "update/Net_fc2.weight": True,
        "fc1_output_0": False,
    }.items():
        shown = CliRunner().invoke(command, [str(run / "shards"), name])
        assert shown.exit_code == 0
        assert (of_a_part in shown.output) == is_of_a_part, name
        answer = json.loads(CliRunner().invoke(command, [str(run / "shards"), name, "--json"]).stdout)
        part = {"worker": "worker_0", "part": "1 of 2 along dimension 0"} if is_of_a_part else None
        assert answer.get("part") == part
    answer = json.loads(CliRunner().invoke(inspect_command, [str(run / "shards"), "--json"]).stdout)
    assert problems_of("inspect", answer) == set()
    parts = {tensor["name"]: tensor["part"] for tensor in answer["measured"]}
    assert parts["gradient/Net_fc1.weight"] == parts["Net_fc1.weight"] == "1 of 2 along dimension 0"
    assert parts["fc1_output_0"] is None
    shown = CliRunner().invoke(inspect_command, [str(run / "shards")]).stdout
    assert "sharded tensors, one worker's part, 1 of 2 along dimension 0, not the whole" in shown


@since("2.6", "fully_shard() for everybody")
def test_a_rank_without_a_value_of_a_sharded_number_leaves_nothing_out(run, two_ranks):
    _, output = two_ranks("sharded_numbers", run)
    assert "leaves out" not in output
    trial = smd.create_trial(str(run))
    held = [trial.statistics(10, worker=worker, kind="parameters") for worker in trial.workers()]
    assert [matrix.row("Linear_bias")["count"] for matrix in held] == [1, 0]


@since("2.6", "fully_shard() for everybody")
def test_every_rank_zooms_into_its_shard_at_the_same_steps(run, two_ranks):
    two_ranks("zoomed_shards", run)
    weight = smd.create_trial(str(run)).tensor("Net_fc1.weight")
    assert weight.steps() == [5, 6]
    for step in (5, 6):
        assert weight.workers(step) == ["worker_0", "worker_1"]
        assert [weight.value(step, worker=worker).shape for worker in weight.workers(step)] == [
            (2, 8),
            (2, 8),
        ]


def test_data_parallel_models_keep_their_names(run):
    model = nn.DataParallel(Net())
    with hook_in(run) as hook:
        hook.register_module(model)
        model(batch()[0]).sum().backward()
    names = smd.create_trial(str(run)).tensor_names()
    assert {"Net_fc1.weight", "gradient/Net_fc1.weight", "fc1_output_0", "Net_output_0"} <= set(names)
    assert not [name for name in names if "module" in name or "DataParallel" in name]


def test_each_rank_writes_the_times_of_its_steps_and_no_digests_for_that(run, two_ranks):
    two_ranks("timed", run)
    trial = smd.create_trial(str(run))
    seen = trial.observations
    found = {step: seen.rank_times(step) for step in trial.steps()}
    firsts = {
        step: {worker: [each.first for each in windows] for worker, windows in of.items()}
        for step, of in found.items()
        if of
    }
    assert {step: of["worker_1"] for step, of in firsts.items()} == {
        step: [step - 10] for step in range(10, 61, 10)
    }
    # What the first rank saves takes it time of its own, at each of the first ten steps.
    assert {step: of["worker_0"] for step, of in firsts.items() if "worker_0" in of} == {
        step: [step - 10] for step in range(20, 61, 10)
    }
    for of in found.values():
        for windows in of.values():
            for times in windows:
                assert times.steps >= 8
                assert 0 < times.backward < times.total
                assert times.outside_passes <= times.outside_backward < times.total
    assert [step for step in trial.steps() if len(seen.roots(step)) > 1] == [0, 10]


def test_ranks_compute_the_same_steps_twice_and_the_defective_one_is_named(run, two_ranks):
    printed, output = two_ranks("computed_twice", run)
    assert [each["same"] for each in printed] == [True, True], output
    trial = smd.create_trial(str(run))
    seen = {step: sorted(trial.observations.computed_twice(step)) for step in trial.steps()}
    both = ["worker_0", "worker_1"]
    assert {step: workers for step, workers in seen.items() if workers} == dict.fromkeys((10, 110, 210), both)
    found = findings_of(CATALOG["ComputedTwice"].load()(trial), trial.steps())
    named = [(each.worker, each.since, each.tensor) for _, each in found]
    assert named == [("worker_1", 210, "fc1_output_0")]
