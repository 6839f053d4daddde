"""How far the workers of a run differ in what they have saved."""

import numpy as np
import pytest

import smdebug
from smdebug.trials import create_trial
from smdebug.ui.about import worker_spread as spreading
from smdebug.ui.about.worker_spread import compared_tensors, worker_spread


def saved_by(place, workers, steps=3):
    """Each worker saves a tensor that is the same everywhere, and one that is larger with its rank."""
    options = {"num_workers": workers, "include_workers": "all", "save_all": True}
    every_step = smdebug.SaveConfig(save_interval=1)
    hooks = [
        smdebug.Hook(str(place), worker=rank, save_config=every_step, **options) for rank in range(workers)
    ]
    for step in range(steps):
        for rank, hook in enumerate(hooks):
            with hook.step():
                hook.record("same", np.full(3, -2.0))
                hook.record("grows", np.full(3, 1.0 + rank * step))
                if rank == 0:
                    hook.record("of one", np.ones(3))
    for hook in hooks:
        hook.close()
    return create_trial(str(place))


def test_the_spread_is_relative_to_the_mean_and_the_largest_comes_first(tmp_path):
    done = []
    first, second = worker_spread(saved_by(tmp_path / "run", 2), done.append)
    assert (first.name, first.steps) == ("grows", (0, 1, 2))
    assert first.spread == pytest.approx((0.0, 1 / 1.5, 2 / 2.0))
    assert first.largest == pytest.approx(1.0)
    assert (second.name, second.spread, second.largest) == ("same", (0.0, 0.0, 0.0), 0.0)
    assert done == [1, 1, 1], "that of one worker was looked at, too"


def test_one_worker_differs_from_none(tmp_path):
    trial = saved_by(tmp_path / "run", 1)
    assert compared_tensors(trial) == []
    assert worker_spread(trial) == ()


def test_of_many_tensors_the_first_are_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(spreading, "MOST_COMPARED", 1)
    trial = saved_by(tmp_path / "run", 2)
    assert compared_tensors(trial) == trial.tensor_names()[:1]
