"""A run that has ended is finished even if some of its rules make no progress."""

from __future__ import annotations

from tests.functions.deployed_settings import settings as stack_settings
from tests.functions.promises.runs import RUN, ahead_of_compared_run, found_steps, summaries
from tests.functions.saver import FAILING, Saver
from tests.functions.small_world import SmallWorld


def ended_with_a_broken_group() -> SmallWorld:
    small = SmallWorld(
        stack_settings(default_rules=("ExplodingTensor",), custom_functions={"Mine": "function-of-mine"})
    )
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "failing", "rule": "ExplodingTensor"},'
        b'{"name": "mine", "rule": "Mine"}]}',
    )
    worker = Saver(small.place()).begin()
    small.deliver()
    small.broken = {group for group in small.index.run(RUN).groups if group != "builtin"}
    for step in range(3):
        worker.save(step, FAILING)
        small.settle()
    worker.end()
    small.settle()
    return small


def test_a_group_that_can_never_finish_is_an_error_after_so_many_checks_and_the_run_is_finished(
    capsys,
):
    small = ended_with_a_broken_group()
    small.pass_time(3600)
    assert small.index.run(RUN).state.value == "Ended"
    small.pass_time(3 * 3600)
    assert small.index.run(RUN).state.value == "Finished"
    assert small.statuses() == {"failing": "IssuesFound", "mine": "Error"}
    (mine,) = (
        rule for group in small.index.groups.all_of(RUN) for rule in group.rules if rule.name == "mine"
    )
    assert (
        "24 checks after the run had ended, the rule had still not evaluated all of its steps" in mine.reason
    )
    assert any(
        detail["configuration"]["name"] == "mine" and detail["status"] == "Error"
        for detail in small.details("Rule Evaluation Status Change")
    )
    (summary,) = summaries(small)
    assert summary["statuses"] == {"IssuesFound": 1, "Error": 1}
    assert '"RuleErrors":[1.0]' in capsys.readouterr().out, "there is an alarm on that"
    assert small.checks.waiting == []


def test_a_rule_added_after_others_were_given_up_is_evaluated():
    small = ended_with_a_broken_group()
    small.pass_time(4 * 3600)
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "failing", "rule": "ExplodingTensor"},'
        b'{"name": "mine", "rule": "Mine"}, {"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.broken.clear()
    small.settle()
    small.pass_time(700)
    assert small.statuses() == {"failing": "IssuesFound", "mine": "Error", "tiny": "NoIssuesFound"}
    assert small.index.run(RUN).state.value == "Finished"
    assert len(summaries(small)) == 2


def test_what_cannot_be_published_is_not_tried_for_ever(small, monkeypatch):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    worker.end()
    monkeypatch.setattr(small.index, "mark_published", lambda *arguments, **more: None)
    monkeypatch.setattr(SmallWorld, "_until_done", lambda self, ask: ask())
    small.settle()
    small.pass_time(12 * 3600)
    assert small.checks.waiting == []
    assert small.index.groups.get(RUN, "builtin").outbox, "the next evaluation publishes it"


def test_executions_that_fail_leave_no_more_checks_than_there_were():
    small = ended_with_a_broken_group()
    waiting = []
    for _ in range(40):
        small.pass_time(60)
        waiting.append(len(small.checks.waiting))
    assert max(waiting) == waiting[0] <= 3
    assert max(waiting[1:]) <= 3  # one of them is to finish the run


def test_a_run_that_waits_for_a_live_run_is_not_given_up():
    small, worker, other = ahead_of_compared_run()
    worker.end()
    small.settle()
    small.pass_time(5 * 3600)
    assert small.index.run(RUN).state.value == "Ended"
    other.save(1, {"w": 1.0})
    small.settle()
    small.pass_time(700)
    assert found_steps(small) == [1]
    assert small.index.run(RUN).state.value == "Finished"
