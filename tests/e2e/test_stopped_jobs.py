"""A finding of the local stack ends the job of its run: in AWS Batch, in Slurm and in Kubernetes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import smdebug
from local_aws import LocalAws, LocalDebugger
from local_aws.serve import STOPS, queues
from smdebug.exceptions import TrainingStopped
from tests.service.stopping.fake_kubernetes import served
from tests.service.stopping.test_process import small_slurm


def test_the_job_of_a_failing_run_is_ended_wherever_it_runs(tmp_path: Path) -> None:
    settings = {"batch_queues": "training,training-spot", "stop_queues": "gpu,hpc"}
    with LocalAws(settings) as aws, aws.as_default():
        debugger = LocalDebugger(aws)
        place = debugger.path("mnist-1")
        batch = aws.client("batch")
        mine, other = jobs_of(aws, place)
        train(place)
        debugger.wait("mnist-1", through=5)
        aws.settle()
        statuses = {job["jobId"]: job for job in batch.describe_jobs(jobs=[mine, other])["jobs"]}
        assert statuses[mine]["status"] == "FAILED"
        assert statuses[mine]["statusReason"] == f"smdebug: a rule has asked to stop {place}"
        assert statuses[other]["status"] == "RUNNING"
        outcomes = {action.effect: action.done for action in aws.connect().run("mnist-1").actions()}
        assert outcomes == {"control object": True, "Batch job": True}
        assert aws.refused() == []

        addresses = queues(aws, STOPS)
        slurm = small_slurm(tmp_path, place)
        said = stop(addresses["hpc"], "--slurm", environment=slurm)
        assert said.startswith(f"stopped 42_1, which trains {place}: NonFiniteValues detected an issue")
        assert Path(slurm["CANCELLED"]).read_text() == "42_1\n"
        with served() as cluster:
            cluster.add("mine", annotations={"smdebug/run": place})
            cluster.add("other", args=["--out=s3://runs/another"])
            stop(addresses["gpu"], "--kubernetes", "ml", "--api", cluster.url)
            assert [job["spec"]["suspend"] for job in cluster.jobs.values()] == [True, False]


def jobs_of(aws: LocalAws, place: str) -> list[str]:
    """Submit a job that trains the run, and one that trains another; return their ids."""
    batch, iam = aws.client("batch"), aws.client("iam")
    role = iam.create_role(RoleName="batch", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    machines = batch.create_compute_environment(
        computeEnvironmentName="machines", type="UNMANAGED", state="ENABLED", serviceRole=role
    )["computeEnvironmentArn"]
    order = [{"order": 1, "computeEnvironment": machines}]
    image = {"image": "train", "vcpus": 1, "memory": 128, "command": ["train"]}
    batch.register_job_definition(jobDefinitionName="train", type="container", containerProperties=image)
    wanted: dict[str, dict[str, Any]] = {
        "training": {"tags": {"smdebug:run": place}},
        "training-spot": {"containerOverrides": {"command": ["train", "--out", "s3://runs/another"]}},
    }
    for queue in wanted:
        batch.create_job_queue(jobQueueName=queue, priority=1, state="ENABLED", computeEnvironmentOrder=order)
    return [
        batch.submit_job(jobName="t", jobQueue=queue, jobDefinition="train", **more)["jobId"]
        for queue, more in wanted.items()
    ]


def train(place: str) -> None:
    rules = [{"rule": "NonFiniteValues", "actions": [{"name": "stoptraining"}]}]
    try:
        with smdebug.Hook(place, rules=rules, system_metrics=False) as hook:
            for step in range(8):
                with hook.step():
                    hook.record_all({"loss": np.nan if step >= 5 else 1 / (1 + step), "weight": np.ones(4)})
    except TrainingStopped:
        pass


def stop(*words: str, environment: dict[str, str] | None = None) -> str:
    """Run the process of the cluster until its queue is empty, as its page does; return what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "smdebug.service.stopping", *words, "--once"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
