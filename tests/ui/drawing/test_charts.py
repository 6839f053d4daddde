"""What the charts of a run hold: metrics of the machine, values that are not finite, copies of the model."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rows import COLUMN, COLUMNS
from smdebug.ui.answering.tensors import last_step_of
from smdebug.ui.drawing import charts as drawn_charts
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.replicas import differences
from tests.ui.written_runs import WrittenRun


def test_metrics_of_the_machine_are_series_and_no_facts(serve, tmp_path):
    WrittenRun(tmp_path / "a", system=lambda step: {"cpu_percent": 10.0 + step}).write(3, end=True)
    client = serve(tmp_path)
    run = client.run("a")
    found = client.get(f"/api/run/{run}/series?name=system/cpu_percent")
    assert found["high"] == [10.0, 11.0, 12.0]
    assert "system" not in [name for _, name, _ in client.get(f"/api/run/{run}/facts")["changes"]]


def test_facts_are_noted_when_they_change_and_long_ones_are_cut():
    charts = Charts()
    charts._note_facts(0, {"batch": 32, "layout": {"a": 1}, "note": "n" * 300, "shape": [4, 3]})
    charts._note_facts(1, {"batch": 32, "shape": [4, 3]})
    charts._note_facts(2, {"batch": 16, "none": None})
    charts._note_facts(3, {"batch": 32, "none": None})
    assert charts.facts == [
        (0, "batch", 32),
        (0, "note", "n" * 199 + "…"),
        (0, "shape", "[4, 3]"),
        (2, "batch", 16),
        (2, "none", None),
        (3, "batch", 32),
    ]


def test_of_facts_that_change_at_every_step_the_first_are_kept(monkeypatch):
    monkeypatch.setattr(drawn_charts, "MOST_FACTS", 3)
    charts = Charts()
    for step in range(5):
        charts._note_facts(step, {"batch": step})
    assert charts.facts == [(0, "batch", 0), (1, "batch", 1), (2, "batch", 2)]


def test_a_tensor_with_values_that_are_not_finite_is_infinite_in_the_heat_map(serve, tmp_path):
    run = WrittenRun(tmp_path / "a", broken=lambda step: (np.arange(8) == 2) * (step == 1))
    run.write(3, end=True)
    client = serve(tmp_path)
    run_id = client.run("a")
    _, _, data = client.ask(f"/api/run/{run_id}/matrix?kind=gradients&statistic=rms")
    begin = 4 + struct.unpack_from("<I", data)[0]
    cells = np.frombuffer(data, "<f4", offset=begin).reshape(8, 3)
    assert np.argwhere(np.isinf(cells)).tolist() == [[2, 1]]


def test_joined_steps_keep_that_one_was_not_finite():
    statistics = Statistics(most=4)
    for step in range(64):
        values = np.ones((1, len(COLUMNS)), np.float32)
        values[0, COLUMN["non_finite"]] = step == 20
        statistics.append(step, ["w"], values)
    window = statistics.window("rms", mark_odd=True)
    assert not window.is_exact
    assert np.isinf(window.high).sum() == 1
    assert (window.low == 1).all()


def rows_of(value: float) -> np.ndarray:
    return np.full((1, len(COLUMNS)), value, np.float32)


def test_a_step_that_comes_again_replaces_itself_and_all_after_it():
    statistics = Statistics()
    for step in range(5):
        statistics.append(step, ["w"], rows_of(step))
    statistics.append(2, ["w"], rows_of(20))
    window = statistics.window("rms")
    assert (window.first.tolist(), window.low.tolist()) == ([0, 1, 2], [[0.0, 1.0, 20.0]])


def test_a_window_late_in_the_run_has_each_of_its_steps_if_they_fit():
    statistics = Statistics()
    for step in range(20):
        statistics.append(step, ["w"], rows_of(step))
    window = statistics.window("rms", first=10, last=14, most=7)  # with a neighbour on each side
    assert (window.first.tolist(), window.low.tolist()) == ([*range(9, 16)], [[*range(9, 16)]])
    joined = statistics.window("rms", first=10, last=14, most=4)
    assert (joined.first.tolist(), joined.last.tolist()) == ([9, 11, 13, 15], [10, 12, 14, 15])


def test_the_last_step_of_a_tensor_is_the_one_at_which_it_was_measured():
    statistics = Statistics()
    for step in range(4):
        measured = np.concatenate([rows_of(step), rows_of(np.nan if step > 1 else step)])
        statistics.append(step, ["w", "frozen"], measured)
    reader = SimpleNamespace(kinds={"parameters": statistics}, steps=[0, 1, 2, 3, 4])
    assert last_step_of(reader, "parameters", "w") == 3
    assert last_step_of(reader, "parameters", "frozen") == 1
    assert last_step_of(reader, "parameters", "of a row that many share") == 4


def test_workers_are_compared_by_their_parameters_and_not_by_their_inputs():
    def roots(step, mode):
        return {
            f"worker_{rank}": {
                "parameters": "b" if rank == 2 and step == 1 else "a",
                "inputs": str(rank),
            }
            for rank in range(4)
        } | {"worker_9": {"inputs": "c"}}

    observed = SimpleNamespace(replica_steps=lambda: [0, 1], roots=roots)
    found = differences(SimpleNamespace(observations=observed, steps=lambda: [0, 1]))
    assert found["workers"] == ["worker_0", "worker_1", "worker_2", "worker_3", "worker_9"]
    assert found["state"] == [[0, 0], [0, 0], [0, 1], [0, 0], [2, 2]]


def test_values_that_a_resumed_training_repeats_are_replaced_although_they_were_read_together():
    charts = Charts()

    def rows(*values):
        return np.array([[step, 0, step, value] for step, value in values], float)

    charts._append_series("loss", rows((0, 1.0), (1, 1.0), (2, 1.0)))
    charts._append_series("loss", rows((3, 1.0), (4, 1.0)))
    charts._append_series("loss", rows((2, 5.0), (3, 6.0), (3, 7.0)))
    charts._append_series("loss", rows((4, 8.0)))
    charts.settle()
    assert charts.series["loss"].steps.tolist() == [0, 1, 2, 3, 4]
    assert charts.series["loss"].values.tolist() == [1.0, 1.0, 5.0, 7.0, 8.0]


def test_an_evaluation_with_the_number_of_a_training_step_is_a_point_of_its_own():
    train, evaluate = ModeKeys.TRAIN.value, ModeKeys.EVAL.value
    records = [
        [(step, train, step, 5.0 - step) for step in range(3)],
        [(2, evaluate, 0, 1.0), (2, evaluate, 1, 2.0)],  # in two records, as a long one has
        [(2, evaluate, 2, 6.0), (3, train, 3, 0.5)],
    ]
    at_once, live = Charts(), Charts()
    for rows in records:
        for charts in (at_once, live):
            charts._append_series("loss", np.array(rows, np.float64))
        live.settle()
    at_once.settle()
    for charts in (at_once, live):
        assert charts.line("loss", "EVAL").values.tolist() == [3.0]
        assert charts.line("loss", "EVAL").training_steps.tolist() == [2]
        assert charts.line("loss", "TRAIN").values.tolist() == [5.0, 4.0, 3.0, 0.5]
        assert charts.series["loss"].values.tolist() == [5.0, 4.0, 3.0, 0.5]
