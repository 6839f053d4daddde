"""Processes that compute together with `jax.distributed` save one run, each its part."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smdebug.jax as smd

ROOT = Path(__file__).parents[3]


@pytest.fixture
def port():
    """A port that no other process gets. It is shared with the coordinator, which alone listens."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("127.0.0.1", 0))
        yield str(kept.getsockname()[1])


def test_each_process_is_a_worker_and_saves_its_part_which_is_reported_once(tmp_path, port):
    run = str(tmp_path / "run")
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.frameworks.jax.process", str(rank), port, run],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    for output in outputs:
        assert output.count("is spread over several processes") == 1
        assert "a is spread over several processes" in output

    trial = smd.create_trial(run)
    assert trial.workers() == ["worker_0", "worker_1"]
    for rank, worker in enumerate(trial.workers()):
        values = {name: trial.tensor(name).value(0, worker=worker) for name in trial.tensor_names()}
        assert values["loss"] == 10 * rank
        assert values["total"] == 2 * 3 * (1 + 2)
        np.testing.assert_array_equal(values["a"], np.full((2, 3), rank + 1))
        np.testing.assert_array_equal(values["b"], np.full((2, 3), 2 * (rank + 1)))
