"""After how much silence somebody looks at a run."""

import pytest

from functions.decisions.silence import marks, watches_silence
from smdebug.service.records import RuleConfiguration


def rule(name="StalledTrainingRule", **parameters):
    return RuleConfiguration(name, name, parameters)


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
def test_a_run_is_looked_at_when_a_rule_or_the_stack_could_find_it_silent(rules, expected):
    assert marks(rules, stall_timeout=1800, silence_timeout=21600) == expected


def test_a_rule_of_ones_own_is_not_asked_in_a_silence():
    mine = RuleConfiguration("mine", "StalledTrainingRule", source="s3://bucket/mine.py")
    assert not watches_silence(mine)
    assert watches_silence(rule())
