"""Series, modes and facts of a run, step by step and put together from several parts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rows import COLUMNS
from smdebug.ui.drawing import charts as drawn_charts
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.folded_rows import FoldedRows

TRAIN, EVAL, GLOBAL = (mode.value for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL))


def rows(*values, mode=TRAIN):
    """Rows of step, mode, step of the mode and value: the steps of a mode are half of the run's."""
    return np.array([[step, mode, step // 2, value] for step, value in values], float)


def drawn(*parts, name="loss"):
    charts = Charts()
    for part in parts:
        charts._append_series(name, part)
    charts.settle()
    return charts


def values_of(pyramid):
    return dict(zip(pyramid.steps.tolist(), pyramid.values.tolist(), strict=True))


def test_a_series_has_its_values_of_all_modes_and_a_line_of_each():
    charts = drawn(rows((0, 1.0), (2, 2.0)), rows((3, 9.0), mode=EVAL), rows((4, 3.0)))
    assert values_of(charts.series["loss"]) == {0: 1.0, 2: 2.0, 3: 9.0, 4: 3.0}
    assert values_of(charts.lines["TRAIN"]["loss"]) == {0: 1.0, 2: 2.0, 4: 3.0}
    assert values_of(charts.lines["EVAL"]["loss"]) == {3: 9.0}
    assert charts.modes_of("loss") == ["TRAIN", "EVAL"]
    assert charts.modes_of("other") == []
    assert charts.training_steps.of(np.array([4])).tolist() == [2]
    assert charts.line("loss", "EVAL").values.tolist() == [9.0]
    assert charts.whole("loss").values.tolist() == [1.0, 2.0, 9.0, 3.0]


def test_an_evaluation_gives_way_to_the_training_step_of_its_number():
    for parts in ([rows((2, 1.0)), rows((2, 9.0), mode=EVAL)], [rows((2, 9.0), mode=EVAL), rows((2, 1.0))]):
        charts = drawn(*parts)
        assert values_of(charts.series["loss"]) == {2: 1.0}
        assert values_of(charts.lines["EVAL"]["loss"]) == {2: 9.0}
    again = drawn(rows((2, 1.0)))
    again._append_series("loss", rows((2, 9.0), mode=EVAL))
    again._append_series("loss", rows((3, 8.0), mode=EVAL))
    again.settle()
    assert values_of(again.series["loss"]) == {2: 1.0, 3: 8.0}


def test_an_evaluation_that_goes_on_later_is_the_mean_of_all_of_it():
    at_once = drawn(rows((4, 1.0), (4, 2.0), (4, 6.0), mode=EVAL))
    charts = drawn(rows((4, 1.0), (4, 2.0), mode=EVAL))
    charts._append_series("loss", rows((4, 6.0), mode=EVAL))
    charts.settle()
    assert values_of(charts.lines["EVAL"]["loss"]) == values_of(at_once.lines["EVAL"]["loss"])
    charts._append_series("loss", rows((8, 5.0), mode=EVAL))
    charts.settle()
    assert values_of(charts.lines["EVAL"]["loss"])[8] == 5.0


def test_a_training_that_is_resumed_replaces_its_later_steps():
    charts = drawn(rows((0, 1.0), (2, 2.0), (4, 3.0)), rows((2, 20.0), (4, 30.0)))
    assert values_of(charts.series["loss"]) == {0: 1.0, 2: 20.0, 4: 30.0}
    charts._append_series("loss", rows((2, 7.0)))
    charts.settle()
    assert values_of(charts.series["loss"]) == {0: 1.0, 2: 7.0}


def test_nothing_is_added_by_no_values():
    charts = drawn(np.empty((0, 4)))
    assert (charts.series, charts.lines, charts.modes, charts.nbytes) == ({}, {}, [], 0)


def test_metrics_of_the_machine_are_series_of_no_mode():
    charts = Charts()
    charts._note_facts(
        3,
        {
            "system": {"cpu": 0.5, "name": "a", "gpus": [{"used": 2}, "none", {"used": 3, "kind": "x"}]},
            "system2": 1,
        },
    )
    charts._note_facts(4, {"system": "no object"})
    charts._note_facts(5, {"system": {"gpus": {"used": 1}}})
    charts.settle()
    names = {"system/cpu": 0.5, "system/gpu0_used": 2.0, "system/gpu2_used": 3.0}
    assert {name: values_of(series) for name, series in charts.series.items()} == {
        name: {3: value} for name, value in names.items()
    }
    assert charts.lines == {}
    assert [name for _, name, _ in charts.facts] == ["system2", "system"]


@pytest.mark.parametrize("hidden", ["layout", "modules", "optimizers", "loss", "frozen"])
def test_facts_that_are_no_line_of_text_are_not_listed(hidden):
    charts = Charts()
    charts._note_facts(0, {hidden: 1, "shown": 1})
    assert charts.facts == [(0, "shown", 1)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("a" * 200, "a" * 200),
        ("a" * 201, "a" * 199 + "…"),
        ([1, 2], "[1, 2]"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_a_fact_is_a_number_or_a_text_of_200_letters(value, shown):
    charts = Charts()
    charts._note_facts(0, {"fact": value})
    assert charts.facts == [(0, "fact", shown)]


def test_stretches_of_steps_of_one_mode_are_joined():
    charts = Charts()
    for step, mode in enumerate([ModeKeys.TRAIN, ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.TRAIN]):
        charts._note_mode(step, mode)
    assert charts.modes == [(0, 1, "TRAIN"), (2, 2, "EVAL"), (3, 3, "TRAIN")]


def part_of(steps, budget=1 << 20):
    charts = Charts(budget=budget)
    for step in steps:
        charts._note_mode(step, ModeKeys.EVAL if step % 4 == 3 else ModeKeys.TRAIN)
        charts.moments.note(step, 100.0 + step)
        charts._append_series("loss", rows((step, float(step)), mode=EVAL if step % 4 == 3 else TRAIN))
        charts._note_facts(step, {"batch": step // 3, "same": "x"})
        values = np.full((2, len(COLUMNS)), step, np.float32)
        charts._append_rows("gradients", step, ["a", "b"], values)
        if step == 5:
            charts.damaged[f"step {step}"] = "cut"
            charts._leave_out_from(step)
    charts.settle()
    return charts


@pytest.mark.parametrize("border", [1, 3, 4, 6, 11])
def test_charts_of_two_parts_are_those_of_the_whole(border):
    whole, charts = part_of(range(12)), part_of(range(border))
    charts.extend(part_of(range(border, 12)))
    assert charts.modes == whole.modes
    assert charts.facts == whole.facts
    assert charts.damaged == whole.damaged
    assert charts.values_left_out_from == whole.values_left_out_from == 5
    assert values_of(charts.series["loss"]) == values_of(whole.series["loss"])
    for mode in ("TRAIN", "EVAL"):
        assert values_of(charts.lines[mode]["loss"]) == values_of(whole.lines[mode]["loss"])
    np.testing.assert_array_equal(
        charts.kinds["gradients"].window("rms").low, whole.kinds["gradients"].window("rms").low
    )
    assert charts.training_steps.knots(100) == whole.training_steps.knots(100)
    assert charts.moments.knots(100) == whole.moments.knots(100)
    assert charts.nbytes > 0


def test_facts_of_later_steps_are_kept_up_to_the_limit(monkeypatch):
    monkeypatch.setattr(drawn_charts, "MOST_FACTS", 4)
    charts = part_of(range(6))
    assert len(charts.facts) == 3
    charts.extend(part_of(range(6, 12)))
    assert [(step, value) for step, name, value in charts.facts if name == "batch"] == [
        (0, 0),
        (3, 1),
        (6, 2),
    ]
    assert len(charts.facts) == 4


def test_the_epochs_of_a_training_are_those_that_it_has_recorded():
    assert Charts().epochs.missing
    charts = drawn(rows((0, 0.0), (2, 0.0), (4, 1.0), (6, 1.0)), name="epoch")
    assert not charts.epochs.missing
    assert charts.epochs.of(np.arange(4)).tolist() == [1, 1, 2, 2]


def test_more_tensors_than_the_limit_share_rows(monkeypatch):
    monkeypatch.setattr(drawn_charts, "MOST_TENSORS", 3)
    charts = Charts()
    names = ["a.x", "a.y", "b.x"]
    charts._append_rows("gradients", 0, names, np.ones((3, len(COLUMNS)), np.float32))
    assert charts.folded == {}
    assert charts.kinds["gradients"].names == names
    folded = Charts()
    values = np.arange(4, dtype=np.float32)[:, None] * np.ones(len(COLUMNS), np.float32)
    folded._append_rows("gradients", 0, [*names, "b.y"], values)
    assert folded.folded["gradients"].tensors == [*names, "b.y"]
    folded._append_rows("gradients", 1, names[:2], values[:2])
    assert folded.folded["gradients"].tensors == names[:2], "few tensors are folded, too, once some were"


def test_the_order_of_tensors_is_worked_out_again_when_there_are_more():
    charts = Charts()
    charts._append_rows("gradients", 0, ["b", "a"], np.ones((2, len(COLUMNS)), np.float32))
    order = charts.order("gradients", None, 0)
    assert sorted(order) == [0, 1]
    assert charts.order("gradients", None, 0) is order
    charts._append_rows("gradients", 1, ["b", "a", "c"], np.ones((3, len(COLUMNS)), np.float32))
    assert sorted(charts.order("gradients", None, 0)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("names", "most", "rows_", "first"),
    [
        (["a", "b", "c"], 3, ["a", "b", "c"], ["a"]),
        (["a", "b", "c"], 2, ["a … b (2 tensors)", "c"], ["a", "b"]),
        (["a", "b", "c"], 1, ["a … c (3 tensors)"], ["a", "b", "c"]),
        (["m/x/1", "m/x/2", "m/y"], 2, ["m/x (2 tensors)", "m/y"], ["m/x/1", "m/x/2"]),
        (["m.x.1", "m.x.2", "n.y"], 2, ["m.x (2 tensors)", "n.y"], ["m.x.1", "m.x.2"]),
        (["m.1"] * 1 + [f"n.{i}" for i in range(1200)], 2, ["m.1", "n (1,200 tensors)"], ["m.1"]),
    ],
)
def test_tensors_are_folded_into_as_many_rows(names, most, rows_, first):
    folded = FoldedRows(names, most)
    assert folded.names == rows_
    assert folded.members(rows_[0]) == first
    assert folded.members("none") == []


def test_saved_values_and_observations_are_read_by_what_a_run_has():
    """A run that is damaged at a step says so, and goes on."""
    from smdebug.exceptions import SMDebugError

    def broken(step):
        raise SMDebugError("cut")

    saved = {3: (7.0, None), 4: (8.0, 9.0), 5: (None, None)}
    written = {
        step: {str(at): SimpleNamespace(saved_at=time) for at, time in enumerate(times)}
        for step, times in saved.items()
    }
    run = SimpleNamespace(
        index=SimpleNamespace(workers_at=lambda step, mode: written.get(step)),
        mode=lambda step: ModeKeys.EVAL if step == 3 else None,
        observations=SimpleNamespace(at=broken),
    )
    charts = Charts()
    for step in (3, 4, 5, 6):
        charts.read(run, step)
    assert charts.damaged == {f"step {step}": "cut" for step in (3, 4, 5, 6)}
    assert charts.modes == [(3, 3, "EVAL"), (4, 6, "GLOBAL")]
    assert charts.moments.knots(10) == [(3, 0.0), (4, 2.0)]
