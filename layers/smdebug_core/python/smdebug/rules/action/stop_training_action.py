"""Stop the SageMaker training job of a run."""

from __future__ import annotations

import re
from typing import Any

from smdebug.logger import get_logger
from smdebug.rules.action.outcome import ActionOutcome, aws_client

_JOB_NAME = re.compile(r"[A-Za-z0-9](?:-*[A-Za-z0-9])*-?")


def problem_of_prefix(prefix: str) -> str | None:
    """Return a sentence about a prefix that no training job's name has, or None."""
    if not prefix:
        return "The action stoptraining needs 'training_job_prefix', a non-empty string"
    if not _JOB_NAME.fullmatch(prefix):
        return (
            f"{prefix!r} is not the prefix of a training job's name: "
            "it may contain only letters, digits and hyphens"
        )
    return None


class StopTrainingAction:
    """Stops the training job in progress whose name begins with the prefix.

    If there is none, or more than one, nothing is stopped, and the outcome names them. A prefix that no job
    can have is logged.
    """

    def __init__(self, rule_name: str, training_job_prefix: str | None):
        self.rule_name = rule_name
        self.training_job_prefix = str(training_job_prefix or "").strip()
        self.problem = problem_of_prefix(self.training_job_prefix)
        if self.problem:
            get_logger().warning("%s: no job is stopped", self.problem)

    def __str__(self) -> str:
        return f"stop training job {self.training_job_prefix}*"

    def invoke(self, message: str = "", trial: object = None, findings: object = ()) -> ActionOutcome:
        """Find the job and stop it."""
        if self.problem:
            return ActionOutcome(str(self), False, self.problem)
        client = aws_client("sagemaker")
        jobs = self._jobs_in_progress(client)
        if len(jobs) != 1:
            found = ", ".join(jobs[:5]) + (", …" if len(jobs) > 5 else "")
            which = f"{len(jobs)} jobs in progress match ({found})" if jobs else "no job in progress matches"
            return ActionOutcome(str(self), False, f"nothing was stopped: {which}")
        client.stop_training_job(TrainingJobName=jobs[0])
        return ActionOutcome(str(self), True, f"requested SageMaker to stop {jobs[0]}")

    def _jobs_in_progress(self, client: Any) -> list[str]:
        pages = client.get_paginator("list_training_jobs").paginate(
            NameContains=self.training_job_prefix,
            StatusEquals="InProgress",
            SortBy="CreationTime",
            SortOrder="Descending",
        )
        names = [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]
        return [name for name in names if name.startswith(self.training_job_prefix)]
