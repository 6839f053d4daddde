"""Metrics of a SageMaker job: a line each, and nothing anywhere else."""

import json
import os

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.config.constants import DEFAULT_SAGEMAKER_METRICS_PATH, TRAINING_JOB_NAME_ENV_VAR
from smdebug.saving.process.sagemaker_metrics import SageMakerMetrics
from tests.saving.saved_files import EVERY_STEP


@pytest.fixture
def job(monkeypatch, tmp_path):
    """The folder that SageMaker's agent watches, in a job."""
    monkeypatch.setenv(TRAINING_JOB_NAME_ENV_VAR, "job")
    monkeypatch.setenv(DEFAULT_SAGEMAKER_METRICS_PATH, str(tmp_path / "metrics"))
    return tmp_path / "metrics"


def lines(folder):
    (file,) = folder.iterdir()
    assert file.name == f"{os.getpid()}.json"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_metric_is_a_line_with_its_mode_step_and_time(job):
    metrics = SageMakerMetrics()
    assert metrics.is_active
    metrics.log("loss", 0.5, modes.TRAIN, 3, timestamp=1600000000.0)
    metrics.log("loss", 0.25, modes.EVAL, 4)
    first, second = lines(job)
    assert first == {
        "MetricName": "loss_TRAIN",
        "Value": 0.5,
        "Timestamp": 1600000000.0,
        "IterationNumber": 3,
    }
    assert (second["MetricName"], second["Value"]) == ("loss_EVAL", 0.25)
    assert second["Timestamp"] > 1.6e9


@pytest.mark.parametrize("missing", [TRAINING_JOB_NAME_ENV_VAR, DEFAULT_SAGEMAKER_METRICS_PATH])
def test_outside_of_a_job_nothing_is_logged(job, missing, monkeypatch):
    monkeypatch.delenv(missing)
    metrics = SageMakerMetrics()
    metrics.log("loss", 0.5, modes.TRAIN, 3)
    assert not metrics.is_active
    assert not job.exists()


def test_a_folder_that_cannot_be_written_is_named_once(job, log_records):
    job.write_text("a file in its place")
    metrics = SageMakerMetrics()
    for step in range(3):
        metrics.log("loss", 0.5, modes.TRAIN, step)
    assert [record.levelname for record in log_records] == ["ERROR"]
    assert str(job) in log_records[0].getMessage()
    assert not metrics.is_active


def test_saved_losses_are_metrics_by_their_mean_and_other_tensors_are_none(job, out_dir):
    with smdebug.Hook(str(out_dir), save_all=True, save_config=EVERY_STEP) as hook:
        for step in range(2):
            with hook.step(modes.TRAIN):
                hook.record("loss", np.array([step, step + 1.0]))
                hook.record("weight", np.ones(2))
                hook.record("loss_of_words", np.array(["a"]))
    assert [(line["MetricName"], line["Value"], line["IterationNumber"]) for line in lines(job)] == [
        ("loss_TRAIN", 0.5, 0),
        ("loss_TRAIN", 1.5, 1),
    ]
