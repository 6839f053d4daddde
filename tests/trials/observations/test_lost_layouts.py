"""The names of a run's statistics, when the file that names them is lost."""

from __future__ import annotations

import numpy as np
import pytest

import smdebug
from smdebug.files.names import event_key, index_key
from smdebug.trials import create_trial
from smdebug.trials.observations.whole_run import ObservationsUnavailable

WORKER = "worker_0"


@pytest.fixture
def run(tmp_path):
    place = tmp_path / "run"
    with smdebug.Hook(str(place)) as hook:
        for step in range(5):
            with hook.step():
                hook.record("loss", 1.0 / (step + 1))
                hook.record("weight", np.full(4, step, np.float32))
    return place


def statistics(run, step):
    found = create_trial(str(run)).observations.statistics(step)
    return [tensor.name for tensor in found.tensors], found.values.tolist()


def lose(path):
    path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("damage", [lose, cut])
def test_the_event_file_gives_back_what_the_first_index_file_named(run, damage):
    expected = statistics(run, 3)
    assert expected[0]
    damage(run / index_key(0, WORKER))
    assert create_trial(str(run)).steps() == [1, 2, 3, 4]
    assert statistics(run, 3) == expected


@pytest.mark.parametrize("damage", [lose, cut])
def test_without_that_file_either_the_statistics_are_reported_as_lost(run, damage):
    lose(run / index_key(0, WORKER))
    damage(run / event_key(0, WORKER))
    with pytest.raises(ObservationsUnavailable, match="smdebug/layout"):
        statistics(run, 3)
