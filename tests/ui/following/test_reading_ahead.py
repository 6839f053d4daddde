"""Other processes read a long run: the charts are those that the server makes by itself."""

from __future__ import annotations

import io
import itertools
import pickle
import subprocess

import numpy as np
import pytest

from smdebug import modes
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rows import COLUMNS
from smdebug.runs.opening import open_run
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.following import reading, reading_ahead, second_process
from smdebug.ui.following.reading import RunReader
from smdebug.ui.following.second_process import Task
from tests.ui.written_runs import WrittenRun

STEPS = 300


@pytest.fixture
def small(monkeypatch):
    """A second process is worth it for a few steps, and reads 32 at a time."""
    monkeypatch.setattr(reading_ahead, "AT_A_TIME", 32)
    monkeypatch.setattr(reading_ahead, "WORTH_IT", 64)
    for module in (reading_ahead, reading):
        monkeypatch.setattr(module, "ALIGNED", 16)


@pytest.fixture
def run(tmp_path):
    """A run with two modes, metrics of the machine, values that are not finite, and a damaged file."""

    def rms(step):
        return np.full(6, 1e6 if step == 201 else 0.01 + step % 7)

    WrittenRun(
        tmp_path / "a",
        tensors=6,
        rms=rms,
        mode=lambda step: modes.EVAL if 50 <= step < 90 else modes.TRAIN,
        system=lambda step: {"cpu_percent": float(step % 3)},
        broken=lambda step: step == 111,
    ).write(STEPS, end=True)
    (file,) = (tmp_path / "a" / "events" / f"{140:012}").iterdir()
    file.write_bytes(file.read_bytes()[:-40])
    return str(tmp_path / "a")


def shown(charts):
    """Return all that a page gets of charts."""
    return {
        "series": {name: (s.steps.tolist(), s.values.tolist()) for name, s in charts.series.items()},
        "kinds": {
            kind: (each.names, each.steps_in_a_stretch, *map(bytes_of, each.stretches))
            for kind, each in charts.kinds.items()
        },
        "modes": charts.modes,
        "facts": charts.facts,
        "damaged": charts.damaged,
    }


def bytes_of(array):
    return None if array is None else array.tobytes()


def read_alone(path):
    reader = RunReader(path, is_alone=True)
    while not reader.is_read:
        reader.advance(1.0)
    return reader


def begun(path):
    """Return a reader whose other processes are ready, and those."""
    reader = RunReader(path, clock=itertools.count().__next__)  # every slice is over at once
    reader.advance(0.0)
    processes = reader._ahead._processes
    for process in processes:
        while not process.is_ready and not process.has_failed:
            process.wait(60)
    return reader, processes


def test_the_charts_are_those_of_reading_alone(small, run, monkeypatch):
    taken = []
    extend = Charts.extend

    def noted(charts, later):
        taken.append(max(later.series["loss"].steps))
        extend(charts, later)

    monkeypatch.setattr(Charts, "extend", noted)
    reader, processes = begun(run)
    assert len(processes) == 2
    while not reader.is_read:
        reader.advance(60.0)
    assert len(taken) > 5
    assert np.diff(taken).tolist() == [32] * (len(taken) - 1)  # in their order
    assert not reader._ahead._processes  # they have ended
    expected = shown(read_alone(run).charts)
    assert shown(reader.charts) == expected
    assert any("step 140" in what for what in expected["damaged"])
    assert max(reader.series["loss"].steps) == STEPS - 1


@pytest.mark.parametrize("which", [0, 1])
def test_without_one_of_the_processes_the_server_reads_on(small, run, which):
    reader, processes = begun(run)
    reader.advance(0.0)
    processes[which].close()
    while not reader.is_read:
        reader.advance(60.0)
    assert shown(reader.charts) == shown(read_alone(run).charts)
    assert not reader._ahead._is_allowed


def test_a_process_that_cannot_start_costs_nothing(small, run, monkeypatch):
    def started(path):
        return subprocess.Popen(["false"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    monkeypatch.setattr(second_process, "_started", started)
    reader = RunReader(run, clock=itertools.count().__next__)
    while not reader.is_read:
        reader.advance(60.0)
    assert shown(reader.charts) == shown(read_alone(run).charts)
    assert not reader._ahead._processes


def test_a_short_run_and_one_in_a_bucket_are_read_without_it(run, monkeypatch):
    monkeypatch.setattr(reading_ahead, "SecondProcess", None)
    assert read_alone(run).steps_read == STEPS
    reader = RunReader(run)
    while not reader.is_read:
        reader.advance(1.0)  # 300 steps are fewer than 2,048
    monkeypatch.setattr(reading_ahead, "WORTH_IT", 64)
    trial = open_run(run)
    monkeypatch.setattr(type(trial.storage), "concurrency", property(lambda storage: 8))
    reader = RunReader(run, trial=trial)
    while not reader.is_read:
        reader.advance(1.0)
    assert reader.steps_read == STEPS


def test_the_process_answers_each_task_with_charts(run):
    trial = open_run(run)
    at = {step: trial.index.workers_at(step, ModeKeys.GLOBAL) for step in range(128)}
    tasks = io.BytesIO()
    for steps in (range(64), range(64, 128)):
        sent = {step: at[step] for step in {0, *steps}}  # the first step has the layout
        pickle.dump(Task(list(steps), sent, 1, {"gradients": 4}), tasks)
    tasks.seek(0)
    answers = io.BytesIO()
    second_process.serve(run, tasks, answers)
    answers.seek(0)
    assert answers.readline() == b"ready\n"
    together, expected = Charts({"gradients": 4}), Charts({"gradients": 4})
    for last in (63, 127):
        part = pickle.load(answers)
        assert part.last == last
        assert part.charts.kinds["gradients"].steps_in_a_stretch == 4
        together.extend(part.charts)
    for step in range(128):
        expected.read(trial, step)
    expected.settle()
    assert shown(together) == shown(expected)


@pytest.mark.parametrize("most", [16, 64, 4096])
def test_stretches_of_later_steps_are_added_as_their_steps_would_be(most):
    random = np.random.default_rng(0)
    names = ["a", "b", "c"]
    values = random.normal(size=(1000, 3, len(COLUMNS))).astype(np.float32)
    values[777, 1] = 1e9
    values[500, 2] = np.nan
    expected, found = Statistics(1 << 30, most), Statistics(1 << 30, most)
    for step, rows in enumerate(values):
        expected.append(step, names, rows)
    for first in range(0, 1000, 64):
        part = Statistics(1 << 30, most, per_stretch=min(64, found.steps_in_a_stretch))
        for step in range(first, min(1000, first + 64)):
            part.append(step, names, values[step])
        found.extend(part)
    assert found.steps_in_a_stretch == expected.steps_in_a_stretch
    for ours, theirs in zip(found.stretches, expected.stretches, strict=True):
        assert bytes_of(ours) == bytes_of(theirs)
    assert np.nanmax(found.window("rms").high) == np.float32(1e9)


def test_later_stretches_may_be_longer_and_begin_again_at_an_earlier_step():
    names, rows = ["a"], np.ones((1, len(COLUMNS)), np.float32)
    early, later = Statistics(), Statistics(per_stretch=4)
    for step in range(8):
        early.append(step, names, rows)
    for step in range(4, 16):  # the training was resumed at step 4
        later.append(step, names, 2 * rows)
    early.extend(later)
    first, last, low, high = early.stretches
    assert (first[0], last[-1], early.steps_in_a_stretch) == (0, 15, 4)
    assert (low[0, 0, 0], high[-1, 0, 0]) == (1, 2)
