"""Permissions on the jobs of trainings, of SageMaker and AWS Batch."""

from __future__ import annotations

import aws_cdk as cdk

from infra.names import BATCH_QUEUES
from infra.python_function import PythonFunction


def let_stop_jobs(function: PythonFunction) -> None:
    """Stop the job of a finding, if its description or a tag says that it trains the run."""
    jobs = f"arn:{cdk.Aws.PARTITION}:sagemaker:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:training-job/*"
    function.may(
        "sagemaker:DescribeTrainingJob",
        "sagemaker:ListTags",
        "sagemaker:StopTrainingJob",
        on=[jobs],
        because="The job of a run is known only when a rule asks to stop it, and its description then says "
        "whether it trains the run.",
    )
    function.may(
        "sagemaker:ListTrainingJobs",
        on=["*"],
        because="IAM has no narrower resource; jobs are listed to find them by prefix.",
    )


def let_stop_batch_jobs(function: PythonFunction, queues: tuple[str, ...]) -> None:
    """Terminate the job of a finding in these queues, if it says that it trains the run."""
    function.knows(BATCH_QUEUES, ",".join(queues))
    if not queues:
        return
    function.may(
        "batch:TerminateJob",
        on=[f"arn:{cdk.Aws.PARTITION}:batch:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:job/*"],
        because="The job of a run is known only when a rule asks to stop it, and its description then says "
        "whether it trains the run. The ARN of a job does not name its queue.",
    )
    function.may(
        "batch:DescribeJobs",
        "batch:ListJobs",
        on=["*"],
        because="IAM has no narrower resource; running jobs of `batch_queues` are listed to find the run's.",
    )
