"""A stalled training is reported while it stalls, and can be stopped."""

from __future__ import annotations

import json
from typing import Any

from smdebug.files.names import index_key
from tests.functions.promises.runs import RUN, found_steps
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld


class Stalling:
    """A run with StalledTrainingRule, whose files tell the world's time."""

    def __init__(self, *, run_id: str | None = "run-1", **rule: Any):
        self.small = SmallWorld()
        self.want(**rule)
        self.saver = Saver(self.small.place(), run_id=run_id).begin()
        self.tells_times = run_id is not None
        self.small.settle()

    def want(self, **rule: Any) -> None:
        configuration = {"name": "stalled", "rule": "StalledTrainingRule", **rule}
        content = json.dumps({"version": 1, "default_rules": False, "rules": [configuration]})
        self.small.place().write("rules.json", content.encode())

    def save(self, step: int) -> None:
        self.saver.save(step)
        if self.tells_times:
            key, place = index_key(step, "worker_0"), self.small.place()
            content = json.loads(place.read(key))
            content["meta"]["saved_at"] = self.small.clock.now()
            content["meta"].pop("file_crc32c", None)
            place.write(key, json.dumps(content).encode())
        self.small.settle()

    def found(self) -> list[str]:
        found = self.small.details("Rule Evaluation Condition Met")
        return [detail["evidence"]["worst"][0]["message"] for detail in found]

    def resolved(self) -> list[int]:
        return [detail["step"] for detail in self.small.details("Rule Issue Resolved")]


def test_a_silence_is_reported_once_and_ends_with_the_next_step():
    run = Stalling(parameters={"threshold": "120"})
    for step in range(3):
        run.save(step)
        run.small.pass_time(100)
    assert run.found() == []
    run.small.pass_time(100)
    assert run.found() == ["no step saved for 120 s after step 2 (limit 120 s)"]
    run.small.pass_time(1000)
    assert found_steps(run.small) == [2]
    assert run.small.statuses() == {"stalled": "IssuesFound"}
    run.save(3)
    assert (len(run.found()), run.resolved()) == (1, [3])
    run.small.pass_time(150)
    assert found_steps(run.small) == [2, 3]


def test_a_training_that_has_ended_is_not_silent():
    run = Stalling(parameters={"threshold": "30"})
    run.save(0)
    run.saver.end()
    run.small.settle()
    run.small.pass_time(4000)
    assert run.found() == []
    assert run.small.statuses() == {"stalled": "NoIssuesFound"}


def test_without_a_threshold_it_is_half_an_hour():
    run = Stalling()
    run.save(0)
    run.small.pass_time(1799)
    assert run.found() == []
    run.small.pass_time(2)
    assert run.found() == ["no step saved for 1800 s after step 0 (limit 1800 s)"]
    states = [detail["state"] for detail in run.small.details("Run State Change")]
    assert states == ["Running", "Silent"]


def test_a_rule_that_waits_longer_than_the_stack_is_asked_later():
    run = Stalling(parameters={"threshold": "4000"})
    run.save(0)
    run.small.pass_time(3999)
    assert run.found() == []
    run.small.pass_time(2)
    assert len(run.found()) == 1


def test_runs_without_times_are_silent_too():
    run = Stalling(run_id=None, parameters={"threshold": "60"})
    run.save(0)
    run.small.pass_time(300)
    assert len(run.found()) == 1
    run.save(1)
    assert run.resolved() == [1]


def test_a_stalled_training_is_stopped_by_an_action_of_the_application():
    parameters = {
        "threshold": "60",
        "stop_training_on_fire": "True",
        "training_job_name_prefix": "Mnist",
    }
    run = Stalling(parameters=parameters)
    run.save(0)
    run.small.pass_time(300)
    (found,) = run.small.details("Rule Evaluation Condition Met")
    assert found["actions"] == [{"name": "stoptraining", "training_job_prefix": "Mnist"}]
    assert found["configuration"]["parameters"] == {"threshold": "60"}


def test_a_rule_attached_to_a_silent_run_reports_the_silence_and_acts():
    run = Stalling(rule="ExplodingTensor")
    run.save(0)
    run.small.pass_time(500)
    run.want(parameters={"threshold": "60"}, actions=[{"name": "stoptraining"}])
    run.small.settle()
    run.small.pass_time(200)
    (found,) = run.small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["catch_up"], len(found["actions"])) == (0, False, 1)


def test_a_run_that_never_saved_anything_is_reported_by_its_state_alone():
    run = Stalling(parameters={"threshold": "60"})
    run.small.pass_time(2000)
    assert run.found() == []
    assert run.small.index.run(RUN).state.value == "Silent"
