"""The errors of AWS in the adapters of actions, translated to our own."""

import json

import boto3
import pytest
from botocore.stub import Stubber

from functions.adapters.asking import ask
from functions.adapters.control_objects import ControlObjectsInS3
from functions.adapters.training_jobs import JobsOfBatch, SageMakerJobs
from functions.ports import NotDone, TooMuch
from smdebug.files.names import STOP_KEY, ZOOM_KEY
from smdebug.saving.requests import control
from tests.support.mocked_aws import mocked_aws


@pytest.fixture
def sagemaker(deployed):
    client = boto3.client("sagemaker")
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()


def test_jobs_in_progress_are_those_whose_names_begin_so(sagemaker):
    client, stubber = sagemaker
    answer = {
        "TrainingJobSummaries": [
            {
                "TrainingJobName": name,
                "TrainingJobArn": f"arn:aws:sagemaker:us-east-1:123456789012:training-job/{name}",
                "CreationTime": 0,
                "TrainingJobStatus": "InProgress",
            }
            for name in ("mnist-2", "my-mnist", "mnist-1")
        ]
    }
    asked = {
        "NameContains": "mnist",
        "StatusEquals": "InProgress",
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "MaxResults": 100,
    }
    stubber.add_response("list_training_jobs", answer, asked)
    assert SageMakerJobs(lambda: client).in_progress("mnist") == ["mnist-2", "mnist-1"]


def test_a_job_says_which_runs_it_trains_by_its_description_and_all_its_tags(deployed):
    client = boto3.client("sagemaker")
    # The stubber would demand the dozen of other required fields.
    answers = {
        "describe": {
            "TrainingJobName": "mnist-1",
            "TrainingJobArn": "arn:job",
            "TrainingJobStatus": "InProgress",
            "CheckpointConfig": {"S3Uri": "s3://runs/checkpoints/1"},
        },
        None: {"Tags": [{"Key": "smdebug:run", "Value": "s3://runs/a"}], "NextToken": "2"},
        "2": {"Tags": [{"Key": "smdebug:run", "Value": "s3://runs/b"}]},
    }
    client.describe_training_job = lambda TrainingJobName: answers["describe"]  # noqa: N803
    client.list_tags = lambda ResourceArn, NextToken=None: answers[NextToken]  # noqa: N803
    job = SageMakerJobs(lambda: client).claims_of("mnist-1")
    assert (job.name, job.in_progress) == ("mnist-1", True)
    assert all(map(job.trains, ["runs/a", "runs/b", "runs/checkpoints/1/run"]))
    assert not any(map(job.trains, ["runs/c", "runs/checkpoints/10", "runs/checkpoints"]))


def test_a_job_is_stopped_and_one_that_is_stopping_will_do(sagemaker):
    client, stubber = sagemaker
    jobs = SageMakerJobs(lambda: client)
    stubber.add_response("stop_training_job", {}, {"TrainingJobName": "mnist-1"})
    jobs.stop("mnist-1")
    for message in (
        "The request was rejected because the training job is in status Stopping.",
        "The request was rejected because the training job is in status Stopped.",
    ):
        stubber.add_client_error("stop_training_job", "ValidationException", message, 400)
    jobs.stop("mnist-1")
    with pytest.raises(NotDone, match="in status Stopped"):
        jobs.stop("mnist-1")


@pytest.fixture
def batch():
    """A queue of moto, and a function that submits a job: without Docker, moto never says RUNNING."""
    with mocked_aws(batch={"use_docker": False}):
        from moto.batch.models import batch_backends

        client = boto3.client("batch")
        role = boto3.client("iam").create_role(RoleName="batch", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        place = client.create_compute_environment(
            computeEnvironmentName="machines", type="UNMANAGED", state="ENABLED", serviceRole=role
        )["computeEnvironmentArn"]
        client.create_job_queue(
            jobQueueName="day",
            priority=1,
            state="ENABLED",
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": place}],
        )
        image = {"image": "train", "vcpus": 1, "memory": 128, "command": ["train"]}
        client.register_job_definition(jobDefinitionName="train", type="container", containerProperties=image)

        def submit(status="RUNNING", **more):
            submitted = client.submit_job(jobName="t", jobQueue="day", jobDefinition="train", **more)["jobId"]
            job = batch_backends["123456789012"]["us-east-1"].get_job_by_id(submitted)
            job.status = status
            return job

        yield client, submit


def test_running_jobs_of_batch_say_what_they_train_and_the_one_is_terminated(batch):
    client, submit = batch
    by_tag = submit(tags={"smdebug:run": "s3://runs/a"})
    by_variable = submit(containerOverrides={"environment": [{"name": "OUT", "value": "s3://runs/b"}]})
    by_command = submit(containerOverrides={"command": ["train", "--out", "s3://runs/c"]})
    submit(status="SUCCEEDED", tags={"smdebug:run": "s3://runs/d"})
    jobs = JobsOfBatch(lambda: client)
    found = {job.name: job for job in jobs.running("day")}
    assert set(found) == {by_tag.job_id, by_variable.job_id, by_command.job_id}
    assert found[by_tag.job_id].trains("runs/a")
    assert found[by_variable.job_id].trains("runs/b")
    assert found[by_command.job_id].trains("runs/c")
    jobs.stop(by_tag.job_id, reason="the loss is NaN")
    assert (by_tag.stop, by_tag.job_stopped_reason) == (True, "the loss is NaN")
    assert not by_variable.stop
    with pytest.raises(NotDone, match="does not exist"):
        jobs.running("night")


def test_all_pages_of_running_jobs_are_described_a_hundred_at_once():
    class Client:
        def __init__(self):
            self.described = []

        def list_jobs(self, *, jobQueue, jobStatus, nextToken=None):  # noqa: N803
            assert (jobQueue, jobStatus) == ("day", "RUNNING")
            first = int(nextToken or 0)
            ids = [{"jobId": str(number)} for number in range(first, first + 80)]
            return {"jobSummaryList": ids, **({"nextToken": str(first + 80)} if first < 160 else {})}

        def describe_jobs(self, *, jobs):
            self.described.append(len(jobs))
            return {"jobs": [{"jobId": job, "status": "RUNNING"} for job in jobs]}

    client = Client()
    assert [job.name for job in JobsOfBatch(lambda: client).running("day")] == [
        str(number) for number in range(240)
    ]
    assert client.described == [100, 100, 40]


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 400, TooMuch),
        ("InternalFailure", 500, TooMuch),
        ("ServiceUnavailable", 503, TooMuch),
        ("AccessDeniedException", 400, NotDone),
        ("ResourceNotFound", 400, NotDone),
    ],
)
def test_a_refusal_shows_whether_to_retry(sagemaker, code, status, error):
    client, stubber = sagemaker
    stubber.add_client_error("stop_training_job", code, "because", status)
    with pytest.raises(error, match=f"stop_training_job was refused: {code}: because"):
        ask(lambda: client, "stop_training_job", TrainingJobName="x")


def test_a_service_that_does_not_answer_is_asked_again_later(deployed):
    client = boto3.client("sns", endpoint_url="https://127.0.0.1:1")
    from botocore.exceptions import EndpointConnectionError

    def unreachable(**request):
        raise EndpointConnectionError(endpoint_url="https://127.0.0.1:1")

    client.publish = unreachable
    with pytest.raises(TooMuch, match="publish could not be called"):
        ask(lambda: client, "publish", Message="x")


def test_the_control_object_is_where_the_hook_looks(deployed):
    assert STOP_KEY == control.STOP_KEY
    objects = ControlObjectsInS3(lambda: deployed.s3)
    objects.write_stop("runs/a/b", json.dumps({"reason": "r"}).encode())
    body = deployed.s3.get_object(Bucket="runs", Key="a/b/control/stop")["Body"].read()
    assert control.StopRequest.read(body).reason == "r"
    with pytest.raises(NotDone, match="NoSuchBucket"):
        objects.write_stop("no-such-bucket/a", b"")
    objects.write_zoom("runs", b"{}")
    assert deployed.s3.get_object(Bucket="runs", Key=ZOOM_KEY)["Body"].read() == b"{}"
