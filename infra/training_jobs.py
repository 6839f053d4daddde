"""The training jobs of SageMaker, as far as the debugger touches them."""

from __future__ import annotations

import aws_cdk as cdk

from infra.python_function import PythonFunction


def let_stop_jobs(function: PythonFunction) -> None:
    """Stop the job of a finding, by its exact name or by what the names of several begin with."""
    function.may(
        "sagemaker:StopTrainingJob",
        on=[
            f"arn:{cdk.Aws.PARTITION}:sagemaker:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:training-job/*"
        ],
        because="Which job trains a run is known only when a rule asks to stop it.",
    )
    function.may(
        "sagemaker:ListTrainingJobs",
        on=["*"],
        because="IAM knows no narrower resource; jobs are listed to find them by how their names begin.",
    )
