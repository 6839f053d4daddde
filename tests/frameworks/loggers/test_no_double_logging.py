"""The loggers of transformers, Lightning and Keras beside ours, in MLflow and W&B: each value arrives once.

What the framework logs is what it logs alone, and ours is in the same run of the tool, under `smdebug/`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest

from tests.frameworks.loggers.training import TRAININGS
from tests.sinks.real.test_wandb import messages, rows
from tests.sinks.servers import wait_until

CLOCKS = ("runtime", "per_second")
AXES = ("global_step",)  # W&B adds it to every row, to the last one of ours, too
OURS = "smdebug/"


def train(framework: str, way: str, folder: Path) -> None:
    """Train in a process of its own, as a script."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.frameworks.loggers.training", framework, way, str(folder / "run")],
        cwd=folder,
        env={
            **{name: text for name, text in os.environ.items() if not name.startswith(("MLFLOW_", "WANDB_"))},
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
            "MLFLOW_EXPERIMENT_NAME": "watched",
            "WANDB_MODE": "offline",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def in_mlflow(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return the steps and values of each metric of the only run, once our report is there."""
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    (experiment,) = (each for each in client.search_experiments() if each.name == "watched")
    (run,) = client.search_runs([experiment.experiment_id])
    if (folder / "run").exists():
        wait_until(lambda: "smdebug.diagnosis" in client.get_run(run.info.run_id).data.tags)
    return {
        name: [(point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)]
        for name in client.get_run(run.info.run_id).data.metrics
    }


def in_wandb(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return the rows and values of each number of the only run."""
    logged: dict[str, list[tuple[int, float]]] = {}
    for row in rows(list(messages(folder))):
        for name, value in row.items():
            logged.setdefault(name, []).append((row["_step"], value))
    return logged


def own(logged: dict[str, list[tuple[int, float]]]) -> dict[str, list[tuple[int, float]]]:
    """What the framework logged, without what the tool adds and clocks."""
    return {
        name: values
        for name, values in logged.items()
        if not name.startswith((OURS, "_")) and not name.endswith((*CLOCKS, *AXES))
    }


@pytest.mark.parametrize("framework", TRAININGS)
def test_each_value_arrives_once(tmp_path, framework):
    ways = ("alone", "callback", "start")
    for way in ways:
        train(framework, way, tmp_path / way)
    for read in (in_mlflow, in_wandb):
        logged = {way: read(tmp_path / way) for way in ways}
        alone = own(logged["alone"])
        assert any("loss" in name for name in alone)
        for way in ("callback", "start"):
            assert own(logged[way]) == alone
            ours = {name for name in logged[way] if name.startswith(OURS)}
            assert any(name.endswith("/rms") for name in ours)
            assert not any("loss" in name for name in ours)
