"""The rules that compare ranks, on runs of several hooks in one process."""

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.saving.ending import other_workers
from smdebug.saving.planning.default_plan import due_before
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG
from smdebug_default_rules.ranks.missing_rank import all_ranks_save, ten_of
from tests.saving.recording.test_observed_beside import Observing
from tests.smdebug_default_rules.made_runs import findings_of

ROUNDED = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(autouse=True)
def nobody_waits_for_ranks_that_died(monkeypatch):
    monkeypatch.setattr(other_workers, "WAITS_FOR", 0.0)


class Ranks:
    """A run of several ranks; a test defines what each of them holds at a step."""

    def __init__(self, place, ranks=2):
        self.place = str(place)
        self.hooks = []
        for rank in range(ranks):
            hook = smdebug.Hook(self.place, worker=rank, num_workers=ranks, run_id="r")
            hook.observes = True
            self.hooks.append(hook)

    def train(self, steps, tensors, ends=None):
        """Train; `tensors(rank, step)` are the rank's tensors, and `ends` the steps at which ranks stop."""
        for step in range(steps):
            for rank, hook in enumerate(self.hooks):
                if step < (ends or {}).get(rank, steps):
                    with hook.step(modes.TRAIN):
                        hook.record("loss", 1.0 / (step + 1))
                        for name, value in tensors(rank, step).items():
                            hook.record(name, np.asarray(value, np.float32))
        return self

    def evaluate(self, rule):
        """End the run; return each finding of the rule with its step, and those at the end of the run."""
        for hook in reversed(self.hooks):
            hook.close()
        trial = create_trial(self.place)
        made = CATALOG[rule].load()(trial)
        found = findings_of(made, trial.steps())
        if hasattr(made, "_absent") and made.invoke_at_end(trial.steps()[-1]):
            found += [(trial.steps()[-1], finding) for finding in made.findings]
        return found


class ChoosingRanks(Ranks):
    """The same, of which weights are chosen."""

    def __init__(self, place, ranks=2, *, every=10):
        self.place = str(place)
        config = smdebug.SaveConfig(save_interval=every)
        chosen = {"include_regex": "weight", "save_config": config, "num_workers": ranks, "run_id": "r"}
        self.hooks = [Observing(self.place, worker=rank, **chosen) for rank in range(ranks)]


def test_a_parameter_that_was_equal_and_differs_is_found(tmp_path):
    def tensors(rank, step):
        return {"body/weight": ROUNDED + step, "norm/weight": np.ones(4) + rank * (step > 0)}

    found = Ranks(tmp_path).train(11, tensors).evaluate("ReplicasDiffer")
    assert [(step, each.tensor, each.since) for step, each in found] == [(10, "norm/weight", 10)]


def test_experts_that_differ_from_the_start_pass(tmp_path):
    """Their biases start at zero, equal on all ranks, which does not make them replicas."""

    def tensors(rank, step):
        return {
            "body/weight": ROUNDED + step,
            "expert/weight": ROUNDED + rank + step,
            "expert/bias": np.full(4, rank * step),
        }

    assert Ranks(tmp_path).train(11, tensors).evaluate("ReplicasDiffer") == []


def test_a_replica_beside_experts_is_found(tmp_path):
    def tensors(rank, step):
        return {"body/weight": ROUNDED + step * rank, "expert/weight": ROUNDED + rank + step}

    found = Ranks(tmp_path).train(11, tensors).evaluate("ReplicasDiffer")
    assert [(step, each.tensor) for step, each in found] == [(10, "body/weight")]


def test_one_rank_of_four_that_differs_from_the_start_is_found(tmp_path):
    def tensors(rank, step):
        return {"body/weight": ROUNDED + (rank == 2)}

    ((step, finding),) = Ranks(tmp_path, 4).train(1, tensors).evaluate("ReplicasDiffer")
    assert (step, finding.tensor, finding.worker) == (0, "body/weight", "worker_2")


def test_equal_inputs_of_replicas_are_found(tmp_path):
    def tensors(rank, step):
        return {"body/weight": ROUNDED + step, "net_input_0": ROUNDED * (step + 1)}

    ((step, finding),) = Ranks(tmp_path).train(11, tensors).evaluate("RanksAlike")
    assert (step, finding.since, finding.worker) == (10, 0, "worker_1")


def test_equal_inputs_of_ranks_with_parameters_of_their_own_pass(tmp_path):
    def tensors(rank, step):
        return {"shard/weight": ROUNDED + rank + step, "net_input_0": ROUNDED * (step + 1)}

    assert Ranks(tmp_path).train(11, tensors).evaluate("RanksAlike") == []


def whole(rank, step):
    return {"body/weight": ROUNDED + step}


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_rank_that_ends_early_is_found_when_the_run_has_ended(tmp_path, ranks):
    found = Ranks(tmp_path, ranks).train(131, whole, ends={1: 31}).evaluate("MissingRank")
    assert {(each.worker, each.since) for _, each in found} == {("worker_1", 110)}


def test_a_rank_that_ends_early_is_found_at_the_next_step_that_all_save(tmp_path):
    found = Ranks(tmp_path).train(211, whole, ends={1: 31}).evaluate("MissingRank")
    assert [(step, each.worker, each.since) for step, each in found] == [(210, "worker_1", 110)]


def test_ranks_that_end_a_few_steps_apart_pass(tmp_path):
    assert Ranks(tmp_path).train(119, whole, ends={1: 109}).evaluate("MissingRank") == []


def test_ranks_that_are_all_there_pass(tmp_path):
    assert Ranks(tmp_path).train(131, whole).evaluate("MissingRank") == []


def test_the_steps_that_all_ranks_save_are_those_of_the_default_plan():
    saved = [s for s in range(9000) if s < 10 or (s <= 1000 and s % 10 == 0) or s % 100 == 0]
    assert [s for s in saved if all_ranks_save(s)] == [s for s in saved if due_before(s) % 10 == 0]


def test_the_tens_are_those_of_the_default_plan():
    saved = [s for s in range(9000) if s < 10 or (s <= 1000 and s % 10 == 0) or s % 100 == 0]
    assert [ten_of(s) for s in saved] == [due_before(s) // 10 for s in saved]


@pytest.mark.parametrize(("every", "since"), [(10, 110), (50, 150), (1, 110)])
def test_a_rank_that_ends_early_is_found_beside_chosen_tensors(tmp_path, every, since):
    found = ChoosingRanks(tmp_path, every=every).train(261, whole, ends={1: 61}).evaluate("MissingRank")
    step, finding = found[0]
    assert (step, finding.worker, finding.since) == (since + 100, "worker_1", since)


@pytest.mark.parametrize("every", [10, 50, 1])
def test_ranks_that_are_all_there_pass_beside_chosen_tensors(tmp_path, every):
    assert ChoosingRanks(tmp_path, every=every).train(261, whole).evaluate("MissingRank") == []


def test_a_copy_that_drifts_is_found_beside_chosen_tensors(tmp_path):
    def tensors(rank, step):
        return {"body/weight": ROUNDED + step, "norm/bias": np.ones(4) + rank * (step > 0)}

    found = ChoosingRanks(tmp_path).train(11, tensors).evaluate("ReplicasDiffer")
    assert [(step, each.tensor, each.since) for step, each in found] == [(10, "norm/bias", 10)]
