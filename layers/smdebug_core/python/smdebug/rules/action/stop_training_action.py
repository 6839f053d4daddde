"""Stop the training job that the rule watches."""

from __future__ import annotations

import re
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.action.outcome import ActionOutcome, aws_client

_JOB_NAME = re.compile(r"[A-Za-z0-9](?:-*[A-Za-z0-9])*-?")


class StopTrainingAction:
    """Stops the one training job in progress whose name begins with the prefix.

    With none, or with several, nothing is stopped, and the outcome says which.
    """

    def __init__(self, rule_name: str, training_job_prefix: str):
        self.rule_name = rule_name
        self.training_job_prefix = training_job_prefix.strip()
        if not _JOB_NAME.fullmatch(self.training_job_prefix):
            raise SMDebugValueError(
                f"{training_job_prefix!r} is not how a training job's name begins: "
                "it has letters, digits and hyphens only"
            )

    def __str__(self) -> str:
        return f"stop training job {self.training_job_prefix}*"

    def invoke(self, message: str = "") -> ActionOutcome:
        """Find the job and stop it."""
        client = aws_client("sagemaker")
        jobs = self._jobs_in_progress(client)
        if len(jobs) != 1:
            found = ", ".join(jobs[:5]) + (", …" if len(jobs) > 5 else "")
            which = (
                f"{len(jobs)} jobs in progress begin so ({found})"
                if jobs
                else "no job in progress does"
            )
            return ActionOutcome(str(self), False, f"nothing was stopped: {which}")
        client.stop_training_job(TrainingJobName=jobs[0])
        return ActionOutcome(str(self), True, f"asked SageMaker to stop {jobs[0]}")

    def _jobs_in_progress(self, client: Any) -> list[str]:
        pages = client.get_paginator("list_training_jobs").paginate(
            NameContains=self.training_job_prefix,
            StatusEquals="InProgress",
            SortBy="CreationTime",
            SortOrder="Descending",
        )
        names = [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]
        return [name for name in names if name.startswith(self.training_job_prefix)]
