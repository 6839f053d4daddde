"""A custom rule on a run, through claim, run and commit: what it sees, remembers and finds."""

from __future__ import annotations

import numpy as np
import pytest

from functions.arrivals.rules_file import groups_of, requested_rules
from functions.custom_rules import jobs
from smdebug.files.notes.checkpoints import Checkpoint, encode_checkpoints
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import GroupRecord
from tests.functions.custom_rules.watched import RUN, Watched, invoking
from tests.functions.saver import Saver


def test_a_custom_rule_evaluates_saved_steps_and_its_finding_is_published(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": "3"})
    for step in range(5):
        watched.save(step)
        watched.settle()

    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["rule"], found["group"]) == (3, "Counts", watched.group.group)
    assert found["evidence"]["worst"] == [
        {
            "tensor": "gradient/fc",
            "statistic": "count",
            "value": 4,
            "threshold": 3,
            "message": "gradient/fc: count 4 (limit 3)",
        }
    ]
    assert found["mode"] == "TRAIN"
    assert found["last_good_step"] == 2
    assert all(found["times"][name] for name in ("saved", "uploaded", "indexed", "evaluated", "published"))
    assert watched.status == "IssuesFound"
    assert watched.group.outbox == {}
    watched.end()
    assert watched.small.index.run(RUN).state.value == "Finished"


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (
            encode_checkpoints("", [Checkpoint(-1, "a.pt"), Checkpoint(2, "b.pt"), Checkpoint(3, "c.pt")]),
            "b.pt",
        ),
        (encode_checkpoints("", [Checkpoint(3, "c.pt")]), None),
        (b'{"checkpoints": [{"step": 1', None),
        (None, None),
    ],
    ids=["before", "later", "cut off", "none"],
)
def test_its_finding_names_the_last_checkpoint_before_its_problem(tmp_path, content, path):
    watched = Watched(tmp_path, parameters={"limit": "3"})
    if content is not None:
        watched.place.write("checkpoints.json", content)
    watched.save(*range(5))
    watched.settle()

    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["diagnosis"]["since"]) == (3, 3)
    assert (found["diagnosis"]["resume_from"] or {}).get("path") == path
    assert watched.status == "IssuesFound"


def test_a_group_that_continued_before_its_rule_was_known_begins_again_with_it(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": "1"})
    small = watched.small
    watched.place.delete("rules.json")
    watched.save(0, 1, 2)
    small.settle()  # with the default rules
    watched.want(watched.wanted)
    (group,) = groups_of(small.world, requested_rules(small.world, RUN)[0])[1:]
    small.index.groups.begin(RUN, GroupRecord(group, cursor=2, finished=True))
    watched.settle()
    small.pass_time(10)
    assert small.index.run(RUN).groups == ("builtin", group)
    assert [step for step, _ in watched.attributes()["seen"]] == [0, 1, 2]
    assert watched.status == "IssuesFound"


def test_its_memory_survives_from_claim_to_claim_as_if_it_had_never_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "STEPS_A_CLAIM", 3)
    in_pieces = Watched(tmp_path / "pieces", parameters={"limit": 100})
    at_once = Watched(tmp_path / "once", parameters={"limit": 100})
    for step in range(11):
        in_pieces.save(step)
        if step in (0, 1, 9):
            in_pieces.settle()
    in_pieces.settle()
    monkeypatch.setattr(jobs, "STEPS_A_CLAIM", 100)
    at_once.save(*range(11))
    at_once.settle()

    assert in_pieces.rule.state == at_once.rule.state
    assert in_pieces.attributes()["seen"] == [(step, 1.5) for step in range(11)]
    assert (in_pieces.group.cursor, at_once.group.cursor) == (10, 10)


def test_a_large_memory_is_kept_in_an_object_of_its_own_that_no_other_lease_uses(tmp_path):
    source = invoking(
        """
        self.all = np.concatenate([getattr(self, "all", np.zeros(0)), np.full(300, step)])
        return False
        """
    )
    watched = Watched(tmp_path, source, "Mine")
    keys = []
    for step in range(3):
        watched.save(step)
        watched.settle()
        keys.append(watched.rule.state_key)
    assert len(set(keys)) == 3
    group, rule = watched.group.group, watched.rule.id
    assert all(key.startswith(f"state/{group}/{rule}/") for key in keys)
    assert watched.rule.state == b""
    np.testing.assert_array_equal(watched.attributes()["all"], np.repeat([0, 1, 2], 300))


def test_a_late_step_is_evaluated_and_marked(tmp_path):
    source = invoking("self.findings = [f'step {step}']; return step == 1")
    watched = Watched(tmp_path, source, "Mine", repeat="every_step")
    old = Saver(watched.place, run_id=None).begin()
    old.save(0)
    old.save(2)
    watched.settle()
    old.save(1)
    watched.settle()
    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert found["step"] == 1
    assert found["late"]
    assert watched.group.cursor == 2
    assert watched.group.late_done == {1}


def test_steps_that_it_does_not_want_are_passed_over_without_running_it(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100}, start_step=3, end_step=5)
    watched.save(*range(8))
    watched.settle()
    assert watched.attributes()["seen"] == [(3, 1.5), (4, 1.5)]
    assert watched.group.cursor == 7
    tokens = watched.group.token
    watched.save(8)
    ran = []
    watched.small.run_rule = lambda *job, **more: ran.append(job)
    watched.settle()
    assert (watched.group.cursor, ran) == (8, [])
    assert watched.group.token == tokens + 1
    watched.end()
    assert watched.status == "NoIssuesFound"


def test_it_reads_steps_before_those_in_its_job(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "HISTORY", (2, 0))
    source = invoking(
        """
        tensor = self.base_trial.tensor("gradient/fc")
        self.steps = tensor.prev_steps(step, 50)
        self.values = [float(tensor.value(one)[1]) for one in self.steps]
        self.names = self.base_trial.tensor_names()
        self.later = [one for one in self.base_trial.steps() if one > step]
        return False
        """
    )
    watched = Watched(tmp_path, source, "Mine")
    for step in range(12):
        name = "gradient/early" if step == 1 else "gradient/late"
        watched.save(
            step,
            tensors={"gradient/fc": np.array([1, step], np.float32), name: np.ones(1, np.float32)},
        )
        if step % 5 == 0:
            watched.settle()
    watched.settle()
    kept = watched.attributes()
    assert kept["steps"] == list(range(12))
    assert kept["values"] == [float(step) for step in range(12)]
    assert kept["names"] == ["gradient/early", "gradient/fc", "gradient/late"]
    assert kept["later"] == []


def test_names_that_are_too_many_for_a_job_are_read_from_the_run(tmp_path, monkeypatch):
    source = invoking("self.names = self.base_trial.tensor_names(); return False")
    watched = Watched(tmp_path, source, "Mine")
    watched.save(0, tensors={"first": np.ones(2, np.float32)})
    watched.save(1, tensors={"gradient/second": np.ones(2, np.float32)})
    monkeypatch.setattr(jobs, "LARGEST_PACKED", 10)
    watched.settle()
    assert watched.attributes()["names"] == ["first", "gradient/second"]


def test_modes_and_collections_are_those_of_the_run(tmp_path):
    source = invoking(
        """
        mode, number = self.base_trial.mode_modestep(step)
        names = self.base_trial.tensor_names(step=step, collection="gradients")
        self.seen = [*getattr(self, "seen", []), (mode.name, number, names)]
        return False
        """
    )
    watched = Watched(tmp_path, source, "Mine")
    watched.save(0)
    watched.save(1, mode=ModeKeys.EVAL, mode_step=0)
    watched.save(2, mode_step=1)
    watched.settle()
    assert watched.attributes()["seen"] == [
        ("TRAIN", 0, ["gradient/fc"]),
        ("EVAL", 0, ["gradient/fc"]),
        ("TRAIN", 1, ["gradient/fc"]),
    ]


def test_steps_before_a_rule_was_attached_are_evaluated_without_actions(tmp_path):
    watched = Watched(tmp_path)
    watched.want()
    watched.save(0, 1)
    watched.settle()
    found = invoking("return True")
    watched.put_source(found)
    watched.want({**watched.wanted, "rule": "Mine", "repeat": "every_step", "actions": [{"name": "email"}]})
    watched.settle()
    watched.save(2)
    watched.settle()
    found = [
        (detail["step"], detail["catch_up"], bool(detail["actions"]))
        for detail in watched.small.details("Rule Evaluation Condition Met")
    ]
    assert found == [(0, True, False), (1, True, False), (2, False, True)]


def test_a_detached_rule_is_stopped_and_its_answer_on_the_way_is_not_taken(tmp_path):
    watched = Watched(tmp_path, invoking("return True"), "Mine", repeat="every_step")
    watched.save(0)
    watched.settle()
    watched.save(1)
    run = watched.small.run_rule

    def detached_meanwhile(job, **more):
        answer = run(job, **more)
        watched.want()
        watched.small.deliver()
        return answer

    watched.small.run_rule = detached_meanwhile
    watched.settle()
    assert watched.status == "Stopped"
    assert watched.found == [0]


def test_a_training_that_resumes_while_the_rule_runs_is_evaluated_again(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(0, 1)
    run = watched.small.run_rule

    def resumed_meanwhile(job, **more):
        answer = run(job, **more)
        watched.small.run_rule = run
        watched.small.clock.time += 60
        Saver(watched.place, training_run=1).begin().save(0)
        watched.small.deliver()
        return answer

    watched.small.run_rule = resumed_meanwhile
    watched.settle()
    assert watched.attributes()["seen"] == [(0, 1.5)]
    assert watched.group.training_run == 1


LOOKS_BACK = invoking("self.seen = list(self.base_trial.steps())\nreturn False", name="LooksBack")


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("history", [(100, 25, 0), (1, 0), (0,)])
def test_a_rule_does_not_see_steps_that_a_later_attempt_hides(tmp_path, monkeypatch, history, is_named):
    """However much of the history fits into a job: the rest is listed, and a listing names no attempts."""
    monkeypatch.setattr(jobs, "HISTORY", history)
    watched = Watched(tmp_path, LOOKS_BACK, "LooksBack")
    watched.save(*range(6))
    watched.settle()
    watched.small.clock.time += 60
    note = {"resumed_at": 2} if is_named else {}
    resumed = Saver(watched.place, training_run=1).begin(**note)
    for step in (2, 4, 6):
        resumed.save(step)
    watched.settle()
    assert watched.attributes()["seen"] == [0, 1, 2, 4, 6]


def test_another_training_at_the_place_hides_all_of_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "HISTORY", (1, 0))
    watched = Watched(tmp_path, LOOKS_BACK, "LooksBack")
    watched.save(*range(6))
    watched.end()
    watched.small.clock.time += 60
    other = Saver(watched.place, run_id="run-2").begin()
    for step in (0, 2, 4):
        other.save(step)
    watched.settle()
    assert watched.attributes()["seen"] == [0, 2, 4]


def test_the_end_of_a_run_finishes_the_rule_once_it_has_seen_all(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "STEPS_A_CLAIM", 2)
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(*range(5))
    watched.end()
    assert watched.status == "NoIssuesFound"
    assert len(watched.attributes()["seen"]) == 5
    assert watched.small.index.run(RUN).state.value == "Finished"


def test_a_step_whose_files_cannot_be_read_is_passed_over_without_running_it(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(*range(5))
    (index,) = tmp_path.rglob("index/*/*2_worker_0.json")
    index.write_bytes(b"{")
    asked = []
    run = watched.small.run_rule

    def noting(job, **more):
        answer = run(job, **more)
        asked.extend(step["step"] for step in answer["steps"])
        return answer

    watched.small.run_rule = noting
    watched.settle()
    assert asked == [0, 1, 3, 4]
    assert [step for step, _ in watched.attributes()["seen"]] == [0, 1, 3, 4]
    assert watched.group.cursor == 4
