"""Only one evaluation of a group counts at a time."""

from __future__ import annotations

import pytest

from functions.evaluation.built_in import evaluate
from functions.rule_groups import GroupBusy, LeaseLost
from tests.functions.promises.runs import RUN, cursor, found_steps
from tests.functions.saver import FAILING, Saver


def test_while_one_evaluates_another_is_turned_away_and_nothing_is_lost(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.deliver()
    small.index.groups.lease(RUN, "builtin", now=small.clock.now(), seconds=130)
    with pytest.raises(GroupBusy):
        evaluate(small.world, RUN, "builtin", 0)
    small.execute()  # gives up: the lease is held
    assert found_steps(small) == []
    small.pass_time(400)  # its holder is dead: the check finds out
    assert found_steps(small) == [0]


def test_a_removed_group_has_nothing_to_publish(small):
    Saver(small.place()).begin()
    small.settle()
    assert evaluate(small.world, RUN, "lane-gone", 0)["outbox"] == []


def test_an_evaluation_that_lost_its_lease_commits_nothing(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.deliver()
    held = small.index.groups.lease(RUN, "builtin", now=small.clock.now(), seconds=130)
    small.clock.time += 131
    small.execute()
    assert cursor(small) == 0
    with pytest.raises(LeaseLost):
        small.index.groups.commit(RUN, held, {})
    assert cursor(small) == 0
