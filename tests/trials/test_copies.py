"""Trials and tensors can be copied, and sent to other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugTypeError
from smdebug.trials import create_trial
from smdebug.trials.past.history import MemoryHistory
from tests.trials.viewing import view_of
from tests.trials.writing import open_trial, write_step


@pytest.fixture
def run(tmp_path):
    hook = smdebug.Hook(str(tmp_path / "run"), save_all=True, save_config=smdebug.SaveConfig(save_interval=1))
    with hook:
        for step in range(3):
            with hook.step():
                hook.record("weight", np.full(4, step, np.float32))
    return tmp_path / "run"


def mean_at(tensor, step):
    return float(tensor.value(step).mean())


def test_a_process_of_its_own_reads_a_tensor_that_it_was_given(run):
    tensor = create_trial(str(run)).tensor("weight")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.starmap(mean_at, [(tensor, step) for step in range(3)]) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_an_equal_trial_with_the_same_range_and_collections(run, again):
    trial = create_trial(str(run), name="mine", range_steps=(1, None))
    trial.collection("mine").include("weight")
    trial.dynamic_refresh = False
    other = again(trial)
    assert (type(other), other, other.name) == (type(trial), trial, "mine")
    assert (other.steps(), other.range_steps) == ([1, 2], (1, None))
    assert other.tensor_names(collection="mine") == ["weight"]
    assert other.dynamic_refresh is False


def test_a_copy_follows_the_run_on_its_own(storage):
    trial = open_trial(storage)
    assert trial.steps() == [0, 3, 4, 6]
    trial.dynamic_refresh = False
    other = copy.copy(trial)
    other.dynamic_refresh = True
    write_step(storage, 7)
    assert (trial.steps(), other.steps(show_incomplete_steps=True)[-1]) == ([0, 3, 4, 6], 7)


def test_a_view_as_of_a_step_says_what_to_copy_instead(storage):
    with pytest.raises(SMDebugTypeError, match="open the run with create_trial"):
        pickle.dumps(view_of(storage, MemoryHistory()))
