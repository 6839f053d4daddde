"""The runs that the documents describe."""

from __future__ import annotations

import boto3
import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from tests.rules.made_runs import STANDARD_COLLECTIONS, MadeRun
from tests.support.mocked_aws import mocked_aws

COLLECTIONS = {**STANDARD_COLLECTIONS, "relu": ["relu"]}


def write_resnet(path, steps=110):
    """Write a run in which every fifth step evaluates and the others train."""
    run = MadeRun(path, collections=COLLECTIONS)
    rng = np.random.default_rng(0)
    for step in range(steps):
        evaluating = step % 10 in (4, 9)
        tensors = {
            "relu_activation:0": rng.random((4, 3)).astype(np.float32),
            "relu:0": rng.normal(size=(4, 3)).astype(np.float32),
            "softmax_output": rng.random(3).astype(np.float32),
            "conv_weight": rng.normal(size=(3, 3)).astype(np.float32),
            "input_0": rng.random((4, 2)).astype(np.float32),
            "loss_output_0": np.array([5.0 - step / 100], np.float32),
            "CrossEntropyLoss:0": np.array([5.0 - step / 100], np.float32),
            "tname": np.array([1.0], np.float32),
        }
        if not evaluating:
            tensors["gradient/conv_weight"] = rng.normal(size=(3, 3)).astype(np.float32)
        run.save(step, tensors, mode=ModeKeys.EVAL if evaluating else ModeKeys.TRAIN)
    run.end()
    return path


@pytest.fixture(scope="session")
def run_path(tmp_path_factory):
    return str(write_resnet(tmp_path_factory.mktemp("resnet")))


@pytest.fixture
def s3():
    """S3 in moto, with the buckets of the documents."""
    with mocked_aws():
        client = boto3.client("s3")
        for bucket in (
            "tornasole-testing-bucket",
            "tornasole-runes",
            "smdebug-testing-bucket",
            "smdebug-dev-test",
        ):
            client.create_bucket(Bucket=bucket)
        yield client
