"""How often an ended run is checked again if it makes no progress."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.decisions.giving_up import (
    Retry,
    counted_check,
    progress_of,
    retry_of,
    unfinished_of,
    why_given_up,
)
from smdebug.service.records import (
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
)

ENDED = RunRecord("runs/mnist", state=RunState.ENDED)
RULE = RuleRecord("mine-1", "mine", changed_at=0.0)
GROUP = GroupRecord("custom-mine-1", cursor=3, rules=(RULE,))


def after_checks(times: int) -> RunRecord:
    record = ENDED
    for _ in range(times):
        record = counted_check(record, progress_of(ENDED, [GROUP]))
    return record


def test_rules_are_given_up_once_after_so_many_checks_that_found_them_no_further():
    seen = [retry_of(after_checks(times), 3) for times in range(1, 7)]
    has_left, is_over, is_gone = Retry
    assert seen == [has_left, has_left, has_left, is_over, is_gone, is_gone]


@pytest.mark.parametrize(
    "moved",
    [
        replace(GROUP, cursor=4),
        replace(GROUP, training_run=1),
        replace(GROUP, finished=True),
        replace(GROUP, late_done=frozenset({1})),
        replace(GROUP, outbox={"a": {}}),
        GROUP.with_rule(replace(RULE, status=RuleStatus.ERROR)),
    ],
)
def test_whatever_moves_is_a_new_beginning(moved):
    record = counted_check(after_checks(3), progress_of(ENDED, [moved]))
    assert record.in_vain == 0


def test_attempts_alone_are_not_progress():
    tried = replace(GROUP, token=7, lease_until=99.0, deaths=2)
    assert progress_of(ENDED, [tried]) == progress_of(ENDED, [GROUP])


def test_a_group_is_unfinished_until_it_has_finished_this_attempt_of_the_training():
    done = replace(GROUP, finished=True)
    assert unfinished_of(ENDED, [GROUP, done]) == [GROUP]
    assert unfinished_of(replace(ENDED, training_run=1), [done]) == [done]


def test_a_rule_given_up_reports_its_last_step_and_its_logs():
    plain = RuleConfiguration("mine", "Mine")
    assert why_given_up(GROUP, plain, 24) == (
        "24 checks after the run had ended, the rule had still not evaluated all of its steps "
        "(the last was step 3): its function fails. See the function's log."
    )
    compares = replace(plain, other_trials=("s3://runs/before",))
    reason = why_given_up(replace(GROUP, cursor=-1), compares, 24)
    assert "(it has evaluated none): its function fails, or s3://runs/before has no more steps" in reason
