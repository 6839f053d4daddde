from __future__ import annotations

import pytest

from smdebug.analysis.utils import no_refresh, parse_bool, parse_list_from_str, refresh
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from tests.rules.made_runs import MadeRun


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


@pytest.mark.parametrize(
    ("argument", "meant"),
    [(None, []), ("", []), ("a, b", ["a", " b"]), (["a"], ["a"]), (("a", "b"), ["a", "b"])],
)
def test_a_list_is_parsed_as_it_always_was(argument, meant):
    assert parse_list_from_str(argument) == meant
    assert parse_list_from_str("a;b", delimiter=";") == ["a", "b"]


def test_what_is_not_a_list_is_refused():
    with pytest.raises(SMDebugTypeError, match="not 5"):
        parse_list_from_str(5)


@pytest.mark.parametrize(
    ("argument", "meant"), [(True, True), ("True", True), ("false", False), (None, "default")]
)
def test_a_boolean_is_parsed_as_it_always_was(argument, meant):
    assert parse_bool(argument, "default") == meant


def test_what_is_not_a_boolean_is_a_value_error():
    for argument in ("yes", "", 7):
        with pytest.raises(SMDebugValueError):
            parse_bool(argument, True)
