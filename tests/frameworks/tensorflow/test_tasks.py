"""Tasks of one training, as `TF_CONFIG` describes them: workers of one run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import smdebug.tensorflow as smd
from smdebug.tensorflow.ranks import rank_and_size

ROOT = Path(__file__).parents[3]
CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}


def described(kind, index, cluster=CLUSTER):
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def test_each_task_is_a_worker_and_the_chief_is_the_first(tmp_path):
    run = tmp_path / "run"
    tasks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.frameworks.tensorflow.task", str(run)],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "TF_CONFIG": described(kind, index),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for kind, index in [("worker", "1"), ("chief", 0), ("worker", 0)]
    ]
    output = [task.communicate(timeout=180)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0, 0], output
    trial = smd.create_trial(str(run))
    assert trial.workers() == ["worker_0", "worker_1", "worker_2"]
    saved = [trial.tensor("who").value(1, worker=worker)[0] for worker in trial.workers()]
    assert saved == [tasks[1].pid, tasks[2].pid, tasks[0].pid]


@pytest.mark.parametrize(
    "config",
    [
        "",
        "not JSON",
        "[]",
        "{}",
        described("evaluator", 0),
        described("worker", 7),
        described("worker", 1, {**CLUSTER, "ps": ["d:1"]}),
        described(["worker"], 1),
        described("worker", 1, ["b:1"]),
        described("worker", 1, {"worker": 2}),
    ],
)
def test_who_is_not_a_trainer_of_several_is_alone(config, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config)
    assert rank_and_size() == (0, 1)
