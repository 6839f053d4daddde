"""Permissions on SageMaker training jobs."""

from __future__ import annotations

import aws_cdk as cdk

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
