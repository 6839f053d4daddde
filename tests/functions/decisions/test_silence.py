"""Whether a run is silent, and when it is checked for silence."""

import pytest

from functions.decisions.silence import (
    SilenceLimits,
    Stage,
    assess,
    checkpoints,
    watches_silence,
)
from smdebug.service.records import RuleConfiguration, RunRecord, RunState, StepRecord

NOW = 1_700_000_000.0


def rule(name="StalledTrainingRule", **parameters):
    return RuleConfiguration(name, name, parameters)


def limits(*rules):
    return SilenceLimits(tuple(rules), stall_timeout=1800, silence_timeout=21600)


def silent_for(seconds, *rules, state=RunState.RUNNING):
    record = RunRecord("runs/mnist", state=state, first_seen=NOW - 100_000)
    return assess(record, [StepRecord(7, indexed=NOW - seconds)], limits(*rules), now=NOW)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], [1800, 21600]),
        (
            [rule(threshold="60"), rule("stalledtraining", threshold="7200")],
            [60, 1800, 7200, 21600],
        ),
        ([rule()], [1800, 21600]),
        ([rule(threshold="a while"), rule(threshold="-1")], [1800, 21600]),
        ([rule("AllZero", threshold="60")], [1800, 21600]),
        ([rule(threshold="99999")], [1800, 21600]),  # by then, the run is over
    ],
)
def test_a_run_is_checked_when_a_rule_or_the_deployment_could_find_it_silent(rules, expected):
    assert checkpoints(limits(*rules)) == expected


def test_a_custom_rule_of_the_same_name_does_not_watch_for_silence():
    mine = RuleConfiguration("mine", "StalledTrainingRule", source="s3://bucket/mine.py")
    assert not watches_silence(mine)
    assert watches_silence(rule())


@pytest.mark.parametrize(
    ("seconds", "stage", "reached", "check_in"),
    [
        (100, Stage.ACTIVE, None, 1700),
        (1800, Stage.SILENT, 1800, 19800),
        (21600, Stage.ENDED, None, None),
    ],
)
def test_a_silence_is_first_reported_and_then_taken_for_the_end(seconds, stage, reached, check_in):
    silence = silent_for(seconds)
    assert (silence.stage, silence.reached) == (stage, reached)
    assert silence.since == NOW - seconds
    assert silence.check_at == (NOW + check_in if check_in else 0.0)


def test_a_silent_run_is_not_reported_again():
    assert silent_for(2000, state=RunState.SILENT).stage is Stage.ACTIVE


def test_a_run_is_checked_again_as_early_as_its_most_impatient_rule_could_find_a_new_silence():
    silence = silent_for(100, rule(threshold="60"))
    assert (silence.reached, silence.check_at) == (60, NOW + 60)
