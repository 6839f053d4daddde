"""Concurrency: a run that is read by many while it is written, and two hooks at one place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smdebug
from smdebug import SaveConfig, modes
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial, create_trial

STEPS = 60
READER = """
import sys
from tests.faults.test_at_once import read_to_the_end
from smdebug.trials import create_trial
print(read_to_the_end(create_trial(sys.argv[1])))
"""
WRITER = """
import sys, smdebug
hook = smdebug.Hook(sys.argv[1], save_config=smdebug.SaveConfig(save_interval=1))
with hook.step(smdebug.modes.TRAIN):
    hook.record("loss", 1.0)
print("first" if hook.first_process else "not first", flush=True)
sys.stdin.readline()
hook.close()
"""


def values_of(step: int) -> dict[str, Any]:
    return {"loss": np.array(float(step)), "weight": np.full((40, 30), step, np.float32)}


def hook_at(place: Any, **settings: Any) -> smdebug.Hook:
    save_config = SaveConfig(save_interval=1)
    return smdebug.Hook(place, include_collections=["weights"], save_config=save_config, **settings)


def save(hook: smdebug.Hook, steps: range) -> None:
    for step in steps:
        with hook.step(modes.TRAIN):
            hook.record_all(values_of(step))


def read_to_the_end(trial: Trial) -> int:
    """Read until the run has ended: each step is complete or absent. Return the number of steps."""
    seen: list[int] = []
    while True:
        over = trial.loaded_all_steps
        steps = trial.steps()
        assert steps[: len(seen)] == seen, "a step that was there is gone"
        for step in steps[len(seen) :]:
            for name, value in values_of(step).items():
                np.testing.assert_array_equal(trial.tensor(name).value(step), value)
        seen = steps
        if over:
            assert seen == list(range(STEPS))
            return len(seen)


def process(code: str, place: Path, **more: Any) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    paths = [str(root / "layers" / "smdebug_core" / "python"), str(root)]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        **more,
    )


def test_threads_and_processes_read_a_run_while_a_hook_writes_it(tmp_path):
    place = tmp_path / "run"
    hook = hook_at(place)
    save(hook, range(1))
    hook.recorder.run.writer.background.drain()
    processes = [process(READER, place) for _ in range(2)]
    shared = create_trial(str(place))
    trials = [shared, shared, *(create_trial(str(place)) for _ in range(3))]
    results: list[object] = []

    def read(trial: Trial) -> None:
        try:
            results.append(read_to_the_end(trial))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=read, args=(trial,), daemon=True) for trial in trials]
    for thread in threads:
        thread.start()
    save(hook, range(1, STEPS))
    hook.close()
    for thread in threads:
        thread.join(60)
    assert results == [STEPS] * len(trials)
    for reader in processes:
        output, _ = reader.communicate(timeout=60)
        assert output.splitlines()[-1] == str(STEPS), output


def test_the_second_of_two_processes_at_one_folder_is_warned_and_the_first_continues(tmp_path):
    first = process(WRITER, tmp_path, stdin=subprocess.PIPE)
    assert first.stdout is not None
    while "first" not in (line := first.stdout.readline()):
        assert line, "the first process has ended"
    second = process(WRITER, tmp_path, stdin=subprocess.PIPE)
    output, _ = second.communicate("\n", timeout=60)
    assert f"Process {first.pid}" in output
    assert "already saves to" in output
    assert output.splitlines()[-1] == "not first"
    first.communicate("\n", timeout=60)
    assert first.returncode == second.returncode == 0
    assert create_trial(str(tmp_path)).steps() == [0]


def test_the_second_of_two_hooks_of_a_process_is_warned_and_the_first_continues(tmp_path, capsys):
    first, second = hook_at(tmp_path), hook_at(tmp_path)
    save(first, range(1))
    save(second, range(3))
    second.close()
    assert "Another hook of this process saves to" in capsys.readouterr().out
    save(first, range(1, 2))
    first.close()
    assert create_trial(str(tmp_path)).steps() == [0, 1]


class Bucket(MemoryStorage):
    """A place without locks that several machines can reach."""

    concurrency = 4

    def claim(self, key: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("run_id", "warning"),
    [(None, "holds an unfinished run"), ("mine", "holds steps of another run")],
)
def test_the_second_of_two_machines_at_one_prefix_is_warned(run_id, warning, capsys, monkeypatch):
    bucket = Bucket()
    first = hook_at(bucket)
    save(first, range(2))
    first.recorder.run.writer.background.drain()
    monkeypatch.setattr("smdebug.saving.place.write_access._savers", {})  # it is another process
    second = hook_at(bucket, run_id=run_id)
    save(second, range(1))
    second.close()
    assert warning in capsys.readouterr().out
    collections = bucket.read("collections/000000000/worker_0_collections.json")
    meta = json.loads(collections)["_meta"]
    assert (meta["run_id"], meta["training_run"]) == (("mine", 0) if run_id else (first.run_id, 1))
    first.close()
