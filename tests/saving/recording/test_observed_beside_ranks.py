"""Digests that other workers save beside the tensors that the first one was asked to save."""

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.files.index import BESIDE
from smdebug.files.replicas import ROOTS
from smdebug.runs.verifying import verify
from smdebug.trials import create_trial
from tests.saving.recording.test_observed_beside import Observing
from tests.saving.saved_files import index_of


def hooks_at(place, every=10, how_many=2, collections=("gradients",), **options):
    config = smdebug.SaveConfig(save_interval=every)
    return [
        Observing(
            str(place),
            include_collections=collections,
            save_config=config,
            worker=rank,
            num_workers=how_many,
            run_id="r",
            **options,
        )
        for rank in range(how_many)
    ]


def train(hooks, steps, *, drifted=0, has_gradients=lambda step: True, mode=modes.TRAIN):
    for step in range(steps):
        for rank, hook in enumerate(hooks):
            with hook.step(mode):
                kernel = np.full((4, 3), step, np.float32) + rank * drifted
                if has_gradients(step):
                    hook.record("gradient/w", kernel)
                hook.record("w", kernel)
                hook.record("layer_output_0", kernel)
                hook.record("loss", np.float32(1 / (step + 1)))


def close(hooks):
    for hook in reversed(hooks):
        hook.close()


def steps_of(place, worker):
    return sorted(int(path.stem.split("_")[0]) for path in place.glob(f"index/*/*_{worker}.json"))


@pytest.mark.parametrize(
    ("every", "digested"),
    [(10, [0, 10, 110, 210]), (1, [0, 10, 110, 210]), (50, [0, 50, 150, 250]), (100, [0, 100, 200])],
)
def test_digests_are_saved_at_the_first_observed_step_of_ten(tmp_path, every, digested):
    hooks = hooks_at(tmp_path, every)
    train(hooks, 260)
    close(hooks)

    assert steps_of(tmp_path, "worker_1") == digested
    observed = create_trial(str(tmp_path)).observations
    assert observed.replica_steps() == digested
    assert [observed.differing(step) for step in digested] == [[] for _ in digested]


def test_a_copy_that_drifted_is_named_with_its_worker(tmp_path):
    hooks = hooks_at(tmp_path, how_many=3)
    for step in range(11):
        for rank, hook in enumerate(hooks):
            with hook.step(modes.TRAIN):
                kernel = np.full((4, 3), step, np.float32) + (rank == 2) * (step == 10)
                hook.record("gradient/w", kernel)
                hook.record("w", kernel)
    close(hooks)

    (found,) = create_trial(str(tmp_path)).observations.differing(10)
    assert (found.name, found.workers) == ("w", ("worker_2",))


def test_the_old_librarys_reader_does_not_count_the_other_workers(tmp_path):
    hooks = hooks_at(tmp_path)
    train(hooks, 11)
    for hook in hooks:
        hook.save_scalar("accuracy", 0.5)
    close(hooks)

    index = index_of(tmp_path, 0, "worker_1")
    assert index["tensor_payload"] == index["shape_payload"] == []
    assert {entry["tensorname"] for entry in index["meta"][BESIDE]} == {
        "smdebug/layout",
        "smdebug/facts",
        "smdebug/digests/parameters",
    }
    assert list(index["meta"][ROOTS]) == ["parameters"]
    trial = create_trial(str(tmp_path))
    assert (trial.num_workers, trial.workers()) == (1, ["worker_0"])
    assert trial.tensor_names() == ["gradient/w", "loss", "scalar/accuracy"]
    assert trial.tensor("gradient/w").workers(10) == ["worker_0"]
    assert verify(str(tmp_path)).problems == ()


def test_nothing_is_saved_where_no_chosen_tensor_comes(tmp_path):
    hooks = hooks_at(tmp_path, every=1, collections=["gradients"])
    train(hooks, 12, has_gradients=lambda step: step > 10)
    close(hooks)

    assert steps_of(tmp_path, "worker_1") == [0, 10]  # with the loss, which is always saved
    assert "smdebug/digests/parameters" in str(index_of(tmp_path, 10, "worker_1")["meta"])


def test_no_tensor_is_wanted_of_another_worker(tmp_path):
    first, second = hooks_at(tmp_path)
    for hook in (first, second):
        hook.begin_step(modes.TRAIN)

    assert (first.wants("gradient/w"), second.wants("gradient/w")) == (True, False)
    assert (second.takes("w"), second.takes("layer_output_0")) == (True, False)
    close([first, second])


def test_an_evaluation_is_not_compared(tmp_path):
    hooks = hooks_at(tmp_path)
    train(hooks, 11, mode=modes.EVAL)
    close(hooks)

    assert steps_of(tmp_path, "worker_1") == []


@pytest.mark.parametrize("choice", ["one", "all"])
def test_who_chooses_the_workers_gets_these(tmp_path, choice):
    hooks = hooks_at(tmp_path, include_workers=choice)
    train(hooks, 11)
    close(hooks)

    assert steps_of(tmp_path, "worker_1") == ([] if choice == "one" else [0, 10])
    assert create_trial(str(tmp_path)).observations.expected_workers == (1 if choice == "one" else 2)


def asked_by(hook):
    """The steps after which it asks the others whether to stop."""
    asked = []
    hook.observes = True
    hook.agreement = lambda: lambda last: asked.append(hook.last_step.step) or last
    for _ in range(30):
        with hook.step(modes.TRAIN):
            hook.record("gradient/w", np.ones(3))
    hook.close()
    return asked


@pytest.mark.parametrize("chooses", [True, False])
def test_all_workers_look_for_requests_at_the_same_steps(tmp_path, chooses):
    every_tenth = smdebug.SaveConfig(save_interval=10)
    options = {"include_collections": ["gradients"], "save_config": every_tenth} if chooses else {}
    asked = [
        asked_by(Observing(str(tmp_path), worker=rank, num_workers=2, run_id="r", **options))
        for rank in (1, 0)
    ]

    assert asked[0] == asked[1] == ([0, 10, 20] if chooses else [*range(10), 10, 20])
