"""A long run is opened with its first steps: each refresh reads some index files more."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.runs.opening import open_run
from smdebug.storage.memory import MemoryStorage
from tests.rules.made_runs import MadeRun


class Counted(MemoryStorage):
    """A storage that counts what is read."""

    def __init__(self):
        super().__init__()
        self.reads: Counter[str] = Counter()

    def read(self, key, span=None):
        self.reads[key] += 1
        return super().read(key, span)


def written(steps, workers=1):
    storage = Counted()
    run = MadeRun(storage, workers=workers)
    for step in range(steps):
        for rank in range(workers):
            run.save(step, {"loss": np.float32(step)}, mode=ModeKeys.TRAIN, mode_step=step, rank=rank)
    return storage, run


@pytest.mark.parametrize("workers", [1, 3])
def test_an_ended_run_shows_more_with_each_refresh_and_ends_with_the_last(workers):
    storage, run = written(20, workers)
    run.end()
    trial = open_run(storage, index_files=7)
    seen = []
    while not trial.loaded_all_steps:
        assert trial.has_more_files
        seen.append(len(trial.steps()))
    assert seen == sorted(seen)
    assert seen[-1] == 20
    assert not trial.has_more_files
    assert len(seen) >= 2
    indexes = {key: count for key, count in storage.reads.items() if key.startswith("index/")}
    assert len(indexes) == 20 * workers
    assert set(indexes.values()) == {1}


def test_a_run_that_continues_is_followed_once_all_was_read():
    storage, run = written(10)
    trial = open_run(storage, index_files=4)
    while trial.has_more_files:
        trial.steps()
    assert trial.steps() == list(range(10))
    run.save(10, {"loss": np.float32(1)}, mode=ModeKeys.TRAIN, mode_step=10)
    assert trial.steps()[-1] == 10
    run.end()
    trial.steps()
    assert trial.loaded_all_steps


def test_without_the_limit_all_is_read_at_once():
    storage, run = written(9)
    run.end()
    trial = open_run(storage)
    assert trial.loaded_all_steps
    assert not trial.has_more_files
    assert len(trial.steps()) == 9
