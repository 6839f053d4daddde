"""How a run stands, by what its training wrote at its end; lists, `inspect` and the page show the same."""

import pytest

import smdebug
from smdebug.runs.listing import listed_run
from smdebug.runs.live_run import LiveRun, State
from smdebug.runs.overview import overview_of
from smdebug.storage.folder import FolderStorage
from smdebug.trials import create_trial
from smdebug.ui.finding.glance import Glancer
from tests.functions.saver import Saver

EVERY_STEP = {"save_config": smdebug.SaveConfig(save_interval=1), "include_regex": ["loss"]}
FAILED = {"closed": True, "last_step": 0, "steps_written": 1, "failed_at": 1_700_000_000.0}
GOES_ON = {"not ended", "training"}


def states(place):
    """What everything shows that shows the state of a run."""
    trial = create_trial(str(place))
    followed = LiveRun(str(place))
    while followed.state in (State.AWAITED, State.CATCHING_UP):
        followed.advance()
    shown = {trial.state, listed_run(str(place), "a").state, overview_of(trial).state}
    return shown | {Glancer().at(str(place)).state, followed.state.value}


def train(place, steps, then=lambda: None):
    with smdebug.Hook(place, **EVERY_STEP) as hook:
        for _ in range(steps):
            with hook.step():
                hook.record("loss", 1.0)
        then()


def test_a_training_that_raises_has_failed_until_it_is_resumed_and_comes_to_its_end(tmp_path):
    with pytest.raises(ZeroDivisionError):
        train(tmp_path / "run", 2, then=lambda: 1 / 0)
    assert states(tmp_path / "run") == {"failed"}
    train(tmp_path / "run", 3)
    assert states(tmp_path / "run") == {"ended"}


def test_a_training_that_was_resumed_after_it_failed_goes_on(tmp_path):
    place = FolderStorage(tmp_path)
    Saver(place).begin().save(0)
    assert states(tmp_path) == GOES_ON  # or was killed
    Saver(place).begin(**FAILED)
    assert states(tmp_path) == {"failed"}
    Saver(place, training_run=1).begin()
    assert states(tmp_path) == GOES_ON


@pytest.mark.parametrize("failed", ["worker_0", "worker_2"])
def test_of_several_ranks_the_first_or_the_last_says_that_they_failed(tmp_path, failed):
    place = FolderStorage(tmp_path)
    for worker in ("worker_0", "worker_1", "worker_2"):
        Saver(place, worker, replicas=3).begin().save(0)
    assert states(tmp_path) == GOES_ON
    Saver(place, failed, replicas=3).begin(**FAILED)
    assert states(tmp_path) == {"failed"}
    other = "worker_2" if failed == "worker_0" else "worker_0"
    Saver(place, other, replicas=3, training_run=1).begin()  # the first of them that is started again
    assert states(tmp_path) == GOES_ON


@pytest.mark.parametrize("when", [True, "1", -1, 1e300, [], None])
def test_a_time_that_is_none_is_no_failure(tmp_path, when):
    place = FolderStorage(tmp_path)
    Saver(place).begin(**{**FAILED, "failed_at": when}).save(0)
    assert states(tmp_path) == GOES_ON
