"""What is done after a finding, and what a rules.json may not request."""

import json

import pytest

from functions.decisions.action_plan import (
    Endpoints,
    Notify,
    Refuse,
    RequestStop,
    StopBatchJob,
    StopJob,
    candidates,
    own_job,
    plan,
)
from functions.decisions.job_ownership import batch_claims_of, claims_of
from smdebug.saving.requests.control import StopRequest
from tests.functions.decisions.sample_events import every_kind

FOUND = every_kind()["found"].detail
KNOWN = Endpoints(emails=("Ada@example.org", "bob@example.org"), phones=("+15551234567",))


def planned(*actions, endpoints=KNOWN, **detail):
    return plan({**FOUND, "actions": actions, **detail}, endpoints)


def test_any_hook_is_asked_to_stop_by_the_control_object():
    (deed,) = planned({"name": "stoptraining", "stop_at_step": 450})
    assert isinstance(deed, RequestStop)
    assert deed.effect == "control object"
    request = StopRequest.read(deed.body)
    assert request.finding_id == FOUND["id"]
    assert request.stop_at_step == 450
    assert (request.run_id, request.training_run) == ("7f9c1d0e", 0)
    assert "gradient/fc2_weight: the mean of |gradient| is 3.1e-09" in request.reason
    assert set(json.loads(deed.body)) >= {"reason", "finding_id", "stop_at_step"}


def test_the_job_of_the_run_is_stopped_besides_by_its_exact_name():
    ask, stop = planned({"name": "stoptraining"}, job="Mnist-2026-1")
    assert isinstance(ask, RequestStop)
    assert isinstance(stop, StopJob)
    assert (stop.name, stop.effect) == ("Mnist-2026-1", "training job")
    _, same = planned({"name": "stoptraining", "training_job_prefix": "Mnist"}, job="Mnist-2026-1")
    assert same.name == "Mnist-2026-1"


def test_no_other_job_than_the_runs_own_is_stopped():
    (deed,) = planned({"name": "stoptraining", "training_job_prefix": "other"}, job="mnist-1")
    assert isinstance(deed, Refuse)
    assert "only its own job, mnist-1" in deed.reason


def test_jobs_of_batch_are_looked_at_where_the_stack_names_queues_and_no_other_job_is_known():
    queues = Endpoints(batch_queues=("day", "night"))
    _, stop = planned({"name": "stoptraining"}, endpoints=queues)
    assert isinstance(stop, StopBatchJob)
    assert (stop.queues, stop.effect) == (("day", "night"), "Batch job")
    _, of_sagemaker = planned({"name": "stoptraining"}, endpoints=queues, job="mnist-1")
    assert isinstance(of_sagemaker, StopJob)
    _, by_prefix = planned({"name": "stoptraining", "training_job_prefix": "mnist"}, endpoints=queues)
    assert isinstance(by_prefix, StopJob)


RUN = "bucket/jobs/mnist-7/debug-output"
ADDRESS = f"s3://{RUN}"


@pytest.mark.parametrize(
    ("description", "trains"),
    [
        ({"tags": {"smdebug:run": ADDRESS}}, True),
        ({"tags": {"smdebug:run": f"{ADDRESS}/"}}, True),
        ({"container": {"environment": [{"name": "OUT", "value": ADDRESS}]}}, True),
        ({"container": {"command": ["python", "train.py", ADDRESS]}}, True),
        ({"container": {"command": ["python", "train.py", f"--out={ADDRESS}"]}}, True),
        ({"parameters": {"out": ADDRESS}, "container": {"command": ["train", "Ref::out"]}}, True),
        (
            {"nodeProperties": {"nodeRangeProperties": [{"container": {"command": ["train", ADDRESS]}}]}},
            True,
        ),
        ({}, False),
        ({"jobName": "mnist-7"}, False),
        ({"tags": {"run": ADDRESS}}, False),
        ({"tags": {"smdebug:run": "s3://bucket/jobs"}}, False),
        ({"container": {"environment": [{"name": "OUT", "value": "s3://bucket/jobs"}]}}, False),
        ({"container": {"environment": [{"name": "OUT", "value": RUN}]}}, False),
        ({"container": {"command": [f"echo {ADDRESS}"]}}, False),
        # It reads that run, and its tag says which one it trains.
        (
            {"tags": {"smdebug:run": "s3://bucket/mine"}, "container": {"command": ["--from", ADDRESS]}},
            False,
        ),
    ],
)
def test_a_batch_job_trains_the_run_that_its_tag_or_else_environment_or_command_names(description, trains):
    job = batch_claims_of({"jobId": "7", "status": "RUNNING", **description})
    assert (job.name, job.in_progress, job.trains(RUN)) == ("7", True, trains)
    assert not job.trains(f"{RUN}/below")


@pytest.mark.parametrize(
    ("prefix", "in_progress", "names", "reason"),
    [
        ("mnist", ["mnist-8", "mnist-7"], ["mnist-7", "mnist-8"], ""),
        ("mnist-7", ["mnist-7", "mnist-70"], ["mnist-7", "mnist-70"], ""),
        ("Mnist", ["mnist-7"], [], "No training job in progress has a name that begins with 'Mnist'"),
        ("mnist", [], [], "No training job in progress"),
        ("m", [f"m-{number}" for number in range(50)], [f"m-{number}" for number in range(20)], ""),
    ],
)
def test_jobs_that_may_be_the_runs_begin_with_the_prefix(prefix, in_progress, names, reason):
    found, why_not = candidates(RUN, prefix, in_progress)
    assert found == names
    assert reason in why_not
    assert bool(why_not) == (not found)


def claims(name="mnist-7", status="InProgress", tags=(), **description):
    return claims_of({"TrainingJobName": name, "TrainingJobStatus": status, **description}, tags)


OUTPUT = {"OutputDataConfig": {"S3OutputPath": "s3://bucket/jobs/"}}


@pytest.mark.parametrize(
    "job",
    [
        claims(**OUTPUT),
        claims(DebugHookConfig={"S3OutputPath": "s3://bucket/jobs"}),
        claims(name="other", DebugHookConfig={"S3OutputPath": f"s3://{RUN}/"}),
        claims(name="other", CheckpointConfig={"S3Uri": "s3://bucket/jobs/mnist-7/"}),
        claims(name="other", tags=[{"Key": "smdebug:run", "Value": f"s3://{RUN}"}]),
    ],
)
def test_a_job_whose_description_or_tag_contains_the_run_is_its_own(job):
    assert own_job(RUN, [claims("stranger"), job]) == (job.name, "")


@pytest.mark.parametrize(
    "job",
    [
        claims(),
        claims(name="mnist-70", **OUTPUT),
        claims(name="mnist", **OUTPUT),
        claims(OutputDataConfig={"S3OutputPath": "s3://bucket"}),
        claims(OutputDataConfig={"S3OutputPath": "s3://other/jobs"}),
        claims(name="other", OutputDataConfig={"S3OutputPath": "s3://bucket/jobs"}),
        claims(name="other", DebugHookConfig={"S3OutputPath": "s3://bucket/jobs"}),
        claims(name="other", CheckpointConfig={"S3Uri": "s3://bucket"}),
        claims(name="other", CheckpointConfig={"S3Uri": "s3://bucket/jobs/mnist"}),
        claims(name="", OutputDataConfig={"S3OutputPath": "s3://bucket/jobs"}),
        claims(name="other", tags=[{"Key": "run", "Value": f"s3://{RUN}"}]),
        claims(name="other", tags=[{"Key": "smdebug:run", "Value": "s3://bucket/jobs"}]),
        claims(name="other", tags=[{"Key": "smdebug:run", "Value": RUN}]),
    ],
)
def test_a_job_that_says_nothing_of_the_run_is_not_its_own(job):
    name, why_not = own_job(RUN, [job])
    assert name is None
    assert f"The training job {job.name} does not say that it trains s3://{RUN}" in why_not


def test_a_job_that_has_ended_and_one_of_two_are_not_stopped():
    name, why_not = own_job(RUN, [claims(status="Completed", **OUTPUT)])
    assert (name, why_not) == (None, "The training job mnist-7 is not in progress.")
    two = [claims(**OUTPUT), claims("b", CheckpointConfig={"S3Uri": f"s3://{RUN}"})]
    name, why_not = own_job(RUN, two)
    assert name is None
    assert "Several training jobs" in why_not


def test_only_endpoints_of_the_stack_are_notified():
    (ada,) = planned({"name": "email", "endpoint": "ada@EXAMPLE.org"})
    assert isinstance(ada, Notify)
    assert ada.to == "Ada@example.org"
    (stranger,) = planned({"name": "email", "endpoint": "mallory@example.org"})
    assert isinstance(stranger, Refuse)
    assert stranger.reason == (
        "mallory@example.org is not an email address that this stack was deployed with: no message was sent."
    )
    (phone,) = planned({"name": "sms", "endpoint": "+1999"})
    assert "+1999 is not a phone number" in phone.reason


def test_a_message_without_a_recipient_goes_to_all_endpoints():
    everybody = planned({"name": "email"}, {"name": "sms"})
    assert [deed.to for deed in everybody] == ["Ada@example.org", "bob@example.org", "+15551234567"]
    (nobody,) = planned({"name": "email"}, endpoints=Endpoints())
    assert nobody.reason.startswith("There is no email address")


def test_an_unknown_action_is_refused():
    (deed,) = planned({"name": "reboot"})
    assert "no action 'reboot'" in deed.reason


def test_every_deed_has_an_id_of_its_own_that_is_the_same_next_time():
    actions = ({"name": "stoptraining"}, {"name": "email"}, {"name": "sms"}, {"name": "reboot"})
    deeds = planned(*actions, job="mnist-1")
    assert len({deed.id for deed in deeds}) == len(deeds) == 6
    assert deeds == planned(*actions, job="mnist-1")
    other = plan({**FOUND, "id": "0" * 32, "actions": actions, "job": "mnist-1"}, KNOWN)
    assert not {deed.id for deed in deeds} & {deed.id for deed in other}


def test_a_finding_without_actions_has_nothing_done():
    assert planned() == ()
