"""The jobs of SageMaker and AWS Batch: find them, ask what they train, stop them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.adapters.asking import Client, ask
from functions.decisions.job_ownership import JobClaims, batch_claims_of, claims_of
from functions.ports import NotDone

_LONGEST_NAME = 63
_DESCRIBED_AT_ONCE = 100  # of DescribeJobs
_MOST_JOBS = 1000  # of a queue that are looked at, in the 60 s of the function


class SageMakerJobs:
    """The jobs of this account and region."""

    def __init__(self, client: Client):
        self._client = client

    def in_progress(self, prefix: str) -> list[str]:
        answer = ask(
            self._client,
            "list_training_jobs",
            NameContains=prefix[:_LONGEST_NAME],
            StatusEquals="InProgress",
            SortBy="CreationTime",
            SortOrder="Descending",
            MaxResults=100,
        )
        names = [str(job["TrainingJobName"]) for job in answer["TrainingJobSummaries"]]
        return [name for name in names if name.startswith(prefix)]

    def claims_of(self, name: str) -> JobClaims:
        description = ask(self._client, "describe_training_job", TrainingJobName=name)
        tags: list[Mapping[str, Any]] = []
        request = {"ResourceArn": description["TrainingJobArn"]}
        while True:
            answer = ask(self._client, "list_tags", **request)
            tags += answer.get("Tags", [])
            if not answer.get("NextToken"):
                return claims_of(description, tags)
            request["NextToken"] = answer["NextToken"]

    def stop(self, name: str) -> None:
        try:
            ask(self._client, "stop_training_job", TrainingJobName=name)
        except NotDone as refusal:
            # SageMaker refuses to stop a job that is stopping already.
            if "status Stopping" not in str(refusal):
                raise


class JobsOfBatch:
    """The jobs of AWS Batch in this account and region."""

    def __init__(self, client: Client):
        self._client = client

    def running(self, queue: str) -> list[JobClaims]:
        ids: list[str] = []
        request = {"jobQueue": queue, "jobStatus": "RUNNING"}
        while len(ids) < _MOST_JOBS:
            answer = ask(self._client, "list_jobs", **request)
            ids += (str(job["jobId"]) for job in answer["jobSummaryList"])
            if not answer.get("nextToken"):
                break
            request["nextToken"] = answer["nextToken"]
        return [
            batch_claims_of(description)
            for first in range(0, len(ids), _DESCRIBED_AT_ONCE)
            for description in ask(
                self._client, "describe_jobs", jobs=ids[first : first + _DESCRIBED_AT_ONCE]
            )["jobs"]
        ]

    def stop(self, job: str, *, reason: str) -> None:
        ask(self._client, "terminate_job", jobId=job, reason=reason)
