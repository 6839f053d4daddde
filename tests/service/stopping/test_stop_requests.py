"""Which run an event asks to stop, and that only one job that names it is stopped."""

import json

import pytest

from smdebug.exceptions import UnreadableMessage
from smdebug.service.stopping.clusters import carry_out
from smdebug.service.stopping.stop_requests import StopRequest, named_in, stop_request

FOUND = {
    "detail-type": "Rule Evaluation Condition Met",
    "detail": {
        "run": "runs/a",
        "step": 400,
        "text": "the loss is NaN",
        "job": None,
        "actions": [{"name": "email"}, {"name": "stoptraining"}],
    },
}


def requested(**detail):
    return stop_request(json.dumps({**FOUND, "detail": {**FOUND["detail"], **detail}}))


def test_a_finding_whose_rule_asks_to_stop_names_the_run_and_the_reason():
    assert requested() == StopRequest("runs/a", "the loss is NaN")
    assert requested(actions=[{"name": "stoptraining", "stop_at_step": 400}])


@pytest.mark.parametrize(
    "detail",
    [
        {"actions": []},
        {"actions": [{"name": "email"}]},
        {"job": "sagemaker-job"},
        {"actions": [{"name": "stoptraining", "training_job_prefix": "mnist"}]},
        {"actions": [{"name": "stoptraining", "stop_at_step": 401}]},
    ],
)
def test_what_others_stop_is_left_to_them(detail):
    assert requested(**detail) is None


def test_another_event_asks_for_nothing():
    assert stop_request(json.dumps({**FOUND, "detail-type": "x"})) is None


@pytest.mark.parametrize("message", ["", "[]", "{}", '{"detail": 1}', json.dumps({**FOUND, "detail": 1})])
def test_what_is_no_event_of_a_run_cannot_be_read(message):
    with pytest.raises(UnreadableMessage):
        stop_request(message)


@pytest.mark.parametrize(
    "actions", [7, ["stoptraining"], [{}], [{"name": "stoptraining", "stop_at_step": "x"}]]
)
def test_a_finding_whose_actions_cannot_be_read_names_its_run(actions):
    with pytest.raises(UnreadableMessage, match="s3://runs/a"):
        requested(actions=actions)


def test_a_word_names_a_run_by_its_whole_address_alone_or_behind_an_equals_sign():
    words = ["train.py", "s3://runs/a/", "--out=s3://runs/b", "runs/c", "echo s3://runs/d", None]
    assert list(named_in(words)) == ["runs/a", "runs/b"]


class Jobs:
    def __init__(self, *jobs):
        self.jobs, self.stopped = list(jobs), []

    def jobs_of(self, run):
        return self.jobs

    def stop(self, job, reason):
        self.stopped.append((job, reason))


@pytest.mark.parametrize(
    ("jobs", "stopped", "answer"),
    [
        (("7",), [("7", "NaN")], "stopped 7, which trains s3://runs/a: NaN"),
        ((), [], "stopped nothing: no running job names s3://runs/a"),
        (("8", "7"), [], "stopped nothing: several jobs name s3://runs/a (7, 8)"),
    ],
)
def test_only_the_one_job_of_a_run_is_stopped(jobs, stopped, answer):
    cluster = Jobs(*jobs)
    assert carry_out(StopRequest("runs/a", "NaN"), cluster) == answer
    assert cluster.stopped == stopped
