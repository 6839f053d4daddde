"""Several workers under the default plan: the first saves everything, the others digests to compare."""

import json

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.files.replicas import ROOTS
from smdebug.saving.ending import other_workers
from smdebug.saving.planning.default_plan import due_before
from smdebug.storage import open_storage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial, create_trial


def hooks_at(place, how_many, **options):
    hooks = []
    for rank in range(how_many):
        hook = smdebug.Hook(place, worker=rank, num_workers=how_many, run_id="r", **options)
        hook.observes = True
        hooks.append(hook)
    return hooks


def train(hooks, steps=21, drifted=None, mode=modes.TRAIN):
    """Steps of all workers; `drifted` maps a rank to what is added to its kernel."""
    for step in range(steps):
        for rank, hook in enumerate(hooks):
            with hook.step(mode):
                kernel = np.full((4, 3), step, np.float32) + (drifted or {}).get(rank, 0)
                hook.record("loss", 1.0 / (step + 1))
                hook.record("dense/weight", kernel)
                hook.record("dense/bias", kernel[0] * 0)
                hook.record("gradient/dense/weight", kernel)
                hook.record("dense_output_0", kernel + rank)


def close(hooks):
    for hook in reversed(hooks):
        hook.close()


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "run")


def index_files(place):
    storage = open_storage(place)
    return {key: json.loads(storage.read(key)) for key in storage.list("index/")}


def test_every_tenth_step_of_the_plan_is_counted_from_the_first():
    due = [step for step in range(3000) if step < 10 or (step <= 1000 and not step % 10) or not step % 100]
    assert [due_before(step) for step in due] == list(range(len(due)))
    assert [step for step in due if due_before(step) % 10 == 0][:5] == [0, 10, 110, 210, 310]


def test_other_workers_save_digests_at_every_tenth_step_of_the_plan(place):
    hooks = hooks_at(place, 3)
    train(hooks, steps=121)
    close(hooks)
    trial = create_trial(place)
    assert trial.steps(modes.TRAIN) == [*range(10), *range(10, 121, 10)]
    assert trial.observations.replica_steps() == [0, 10, 110]
    of_others = {key: file for key, file in index_files(place).items() if "worker_0" not in key}
    assert len(of_others) == 6
    names = {entry["tensorname"] for file in of_others.values() for entry in file["tensor_payload"]}
    assert names == {"smdebug/layout", "smdebug/facts", "smdebug/digests/parameters"}


def test_each_index_file_holds_the_root_of_its_digests(place):
    hooks = hooks_at(place, 2)
    train(hooks, steps=3)
    close(hooks)
    roots = [file["meta"].get(ROOTS) for file in index_files(place).values()]
    assert len(roots) == 4  # three steps of the first worker, one of the other
    assert all(list(root) == ["parameters"] for root in roots)
    assert all(len(root["parameters"]) == 32 for root in roots)


def test_equal_copies_have_equal_roots(place):
    hooks = hooks_at(place, 4)
    train(hooks)
    close(hooks)
    observed = create_trial(place).observations
    assert sorted(observed.roots(10)) == [f"worker_{rank}" for rank in range(4)]
    assert len({roots["parameters"] for roots in observed.roots(10).values()}) == 1
    assert observed.differing(10) == []
    assert observed.absent_workers(10) == []


def test_a_copy_that_drifted_is_found_with_its_worker_and_its_tensor(place):
    hooks = hooks_at(place, 4)
    train(hooks, drifted={2: 1e-6})
    close(hooks)
    (found,) = create_trial(place).observations.differing(0)
    assert found.name == "dense/weight"
    assert found.workers == ("worker_2",)
    assert found.others == ("worker_0", "worker_1", "worker_3")


def test_of_two_workers_that_differ_the_second_is_the_one_that_is_named(place):
    hooks = hooks_at(place, 2)
    train(hooks, drifted={0: 1})
    close(hooks)
    (found,) = create_trial(place).observations.differing(10)
    assert (found.workers, found.others) == (("worker_1",), ("worker_0",))


def test_a_worker_that_saves_nothing_is_absent(place, monkeypatch):
    monkeypatch.setattr(other_workers, "WAITS_FOR", 0.0)
    hooks = hooks_at(place, 3)
    train(hooks, steps=1)
    train(hooks[:2], steps=12)
    close(hooks)
    observed = create_trial(place).observations
    assert observed.expected_workers == 3
    assert observed.absent_workers(0) == []
    assert observed.absent_workers(10) == ["worker_2"]


def test_digests_of_single_tensors_are_read_once_for_each_root(place):
    hooks = hooks_at(place, 6)
    train(hooks, drifted={4: 1, 5: 1})
    close(hooks)
    trial = create_trial(place)
    read = []
    layout = trial.observations.layout  # read with the digests that belong to it
    trial.observations.layout = lambda step, mode, worker: read.append(worker) or layout(step, mode, worker)
    assert trial.observations.differing(10)[0].workers == ("worker_4", "worker_5")
    assert read == ["worker_0", "worker_4"]


def test_a_step_is_complete_when_the_first_worker_has_written_it():
    storage = MemoryStorage()
    first, second = hooks_at(storage, 2)
    train([second], steps=11)
    second.flush()
    train([first], steps=9)
    first.flush()
    trial = Trial("run", storage)
    assert trial.steps() == [*range(9)]
    assert trial.steps(show_incomplete_steps=True) == [*range(9), 10]
    close([first, second])


def test_digests_that_come_after_their_step_are_found():
    storage = MemoryStorage()
    first, second = hooks_at(storage, 2)
    train([first], steps=45)
    first.flush()
    trial = Trial("run", storage)
    assert sorted(trial.observations.roots(10)) == ["worker_0"]
    train([second], steps=45)
    second.flush()
    assert trial.observations.replica_steps() == [0, 10]
    close([first, second])


def test_scalars_and_tensors_of_other_workers_are_not_saved(place):
    hooks = hooks_at(place, 2)
    for hook in hooks:
        hook.save_scalar("before", 1.0)
    train(hooks, steps=2)
    for hook in hooks:
        hook.save_scalar("accuracy", 0.5)
        hook.save_tensor("mine", np.ones(3))
    close(hooks)
    trial = create_trial(place)
    for name in ("scalar/before", "scalar/accuracy", "mine"):
        steps = trial.tensor(name).steps()
        assert {worker for step in steps for worker in trial.tensor(name).workers(step)} == {"worker_0"}


def test_validation_is_not_compared(place):
    hooks = hooks_at(place, 2)
    train(hooks, steps=3, mode=modes.EVAL)
    close(hooks)
    assert create_trial(place).observations.replica_steps() == []


@pytest.mark.parametrize(("workers", "files"), [("one", 5), ("all", 10)])
def test_an_explicit_choice_of_workers_wins(place, workers, files):
    hooks = hooks_at(place, 2, include_workers=workers)
    train(hooks, steps=5)
    close(hooks)
    trial = create_trial(place)
    assert len(index_files(place)) == files
    assert trial.num_workers == (2 if workers == "all" else 1)
    assert trial.observations.expected_workers == trial.num_workers


def test_a_hook_in_one_process_alone_waits_for_no_other(place, monkeypatch, capsys):
    monkeypatch.setattr(other_workers, "WAITS_FOR", 1e6)
    first, _ = hooks_at(place, 2)
    train([first], steps=2)
    first.close()
    assert "workers closed" not in capsys.readouterr().out
    assert open_storage(place).exists("training_job_end.ts")


def test_an_overview_counts_the_workers_that_save_digests(place):
    from smdebug.runs.overview import overview_of

    hooks = hooks_at(place, 3)
    train(hooks, steps=3)
    close(hooks)
    overview = overview_of(create_trial(place), with_values=False)
    assert (overview.num_workers, overview.digest_workers) == (1, 2)
    assert overview.to_dict()["digest_workers"] == 2
