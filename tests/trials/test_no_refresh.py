from __future__ import annotations

import pytest

from smdebug.trials import no_refresh, refresh
from tests.rules.made_runs import MadeRun
from tests.trials.writing import a_run, open_trial


def test_no_refresh_holds_for_the_block_and_restores_what_was():
    trial = open_trial(a_run())
    with no_refresh(trial):
        assert trial.dynamic_refresh is False
        with refresh(trial):
            assert trial.dynamic_refresh is True
        assert trial.dynamic_refresh is False
    assert trial.dynamic_refresh is True


def test_an_exception_restores_it_too():
    trial = open_trial(a_run())
    trial.dynamic_refresh = False
    with pytest.raises(KeyError), refresh(trial), no_refresh(trial):
        raise KeyError
    assert trial.dynamic_refresh is False


def test_what_is_set_inside_the_block_ends_with_it():
    trial = open_trial(a_run())
    with no_refresh(trial):
        trial.dynamic_refresh = True
        assert trial.dynamic_refresh is True
    trial.dynamic_refresh = False
    assert trial.dynamic_refresh is False


def test_blocks_that_overlap_leave_it_as_it_was():
    trial = open_trial(a_run())
    first, second = no_refresh(trial), no_refresh(trial)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert trial.dynamic_refresh is False
    second.__exit__(None, None, None)
    assert trial.dynamic_refresh is True


@pytest.fixture
def run():
    return MadeRun().save(0, {"loss": [1.0]})


def test_nothing_new_is_seen_within_no_refresh(run):
    trial = run.trial()
    with no_refresh(trial):
        run.save(1, {"loss": [1.0]})
        assert trial.steps() == [0]
        with refresh([trial]):
            assert trial.steps() == [0, 1]
        run.save(2, {"loss": [1.0]})
        assert trial.steps() == [0, 1]
    assert trial.steps() == [0, 1, 2]


def test_trials_continue_refreshing_after_an_error(run):
    trials = [run.trial(), run.trial()]
    with pytest.raises(ZeroDivisionError), no_refresh([*trials, trials[0]]):
        assert [trial.dynamic_refresh for trial in trials] == [False, False]
        raise ZeroDivisionError
    assert [trial.dynamic_refresh for trial in trials] == [True, True]
