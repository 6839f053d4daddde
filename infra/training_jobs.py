"""Permissions on SageMaker training jobs."""

from __future__ import annotations

import aws_cdk as cdk

from infra.python_function import PythonFunction


def let_stop_jobs(function: PythonFunction) -> None:
    """Stop the jobs of a finding, by exact name or by prefix."""
    function.may(
        "sagemaker:StopTrainingJob",
        on=[f"arn:{cdk.Aws.PARTITION}:sagemaker:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:training-job/*"],
        because="The job of a run is known only when a rule asks to stop it.",
    )
    function.may(
        "sagemaker:ListTrainingJobs",
        on=["*"],
        because="IAM has no narrower resource; jobs are listed to find them by prefix.",
    )
