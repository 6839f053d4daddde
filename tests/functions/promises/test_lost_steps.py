"""Steps that a worker could not write are a problem of the run, and no verdict passes over them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smdebug.files.names import event_key, index_key
from tests.functions.promises.runs import RUN, summaries
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld

LOST = {"count": 24, "first": 36, "last": 59, "reason": "No space left on device"}


def ended(values: Any = HEALTHY, *, damaged: str = "", **note: Any) -> SmallWorld:
    """Return a run of three steps that has ended with this closing note; one file may be empty."""
    small = SmallWorld()
    rule = {"name": "rule", "rule": "ExplodingTensor"}
    rules = {"version": 1, "default_rules": False, "rules": [rule]}
    small.place().write("rules.json", json.dumps(rules).encode())
    saver = Saver(small.place()).begin()
    for step in range(3):
        saver.save(step, values)
    if damaged:
        small.place().write(damaged, b"")
    saver.begin(closed=True, last_step=2, **note)
    small.settle()
    saver.end()
    small.settle()
    small.pass_time(400)
    return small


def test_a_run_without_lost_steps_passes():
    small = ended()
    assert small.index.run(RUN).troubles == {}
    assert summaries(small)[-1]["verdict"] == "NoIssuesFound"
    assert "lost_steps" not in summaries(small)[-1]


def test_lost_steps_are_a_problem_of_the_run_and_its_verdict_is_incomplete():
    small = ended(lost_steps=LOST)
    problem = small.index.run(RUN).troubles["lost steps"]
    assert problem.startswith("24 steps of worker_0 could not be written, from step 36 on: No space left")
    summary = summaries(small)[-1]
    assert (summary["verdict"], summary["lost_steps"]) == ("Incomplete", problem)
    published = [event["trouble"] for event in small.details("Run State Change") if event["trouble"]]
    assert published
    assert set(published) == {problem}


def test_a_finding_is_the_verdict_beside_lost_steps():
    assert summaries(ended(FAILING, lost_steps=LOST))[-1]["verdict"] == "IssuesFound"


@pytest.mark.parametrize("lost", [{"count": 0}, {"count": "many"}, [], {"first": 3}])
def test_a_note_that_names_no_number_of_lost_steps_names_none(lost):
    assert summaries(ended(lost_steps=lost))[-1]["verdict"] == "NoIssuesFound"


@pytest.mark.parametrize("file", [event_key(1, "worker_0"), index_key(1, "worker_0")])
def test_a_step_that_cannot_be_read_is_a_problem_of_the_run_and_its_verdict_is_incomplete(file):
    small = ended(damaged=file)
    problem = small.index.run(RUN).troubles["steps"]
    assert file in problem
    assert (summaries(small)[-1]["verdict"], summaries(small)[-1]["unread_steps"]) == ("Incomplete", problem)
    assert summaries(ended(FAILING, damaged=file))[-1]["verdict"] == "IssuesFound"


def test_a_resumed_training_begins_without_files_that_could_not_be_read():
    small = ended(damaged=event_key(1, "worker_0"))
    saver = Saver(small.place(), training_run=1).begin()
    small.settle()
    assert small.index.run(RUN).troubles == {}
    for step in range(3):
        saver.save(step)
    saver.begin(closed=True, last_step=2)
    small.settle()
    saver.end()
    small.settle()
    small.pass_time(400)
    assert summaries(small)[-1]["verdict"] == "NoIssuesFound"


def test_a_resumed_training_begins_without_lost_steps():
    small = SmallWorld()
    Saver(small.place()).begin(closed=True, last_step=None, lost_steps=LOST)
    small.settle()
    assert small.index.run(RUN).troubles
    Saver(small.place(), training_run=1).begin()
    small.settle()
    assert small.index.run(RUN).troubles == {}
