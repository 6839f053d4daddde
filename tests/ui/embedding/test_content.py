"""What a report holds of a run, within its limits."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.numbers.rows import COLUMN, COLUMNS
from smdebug.ui.embedding import content
from smdebug.ui.embedding.content import content_of, id_in_report
from smdebug.ui.following.reading import RunReader


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of 30 steps that saved two tensors of 4 values and a loss, some of it in evaluations."""
    place = tmp_path_factory.mktemp("runs") / "a"
    options = {"save_all": True, "save_config": smdebug.SaveConfig(save_interval=1)}
    with smdebug.Hook(str(place), **options) as hook:
        for step in range(30):
            mode = smdebug.modes.EVAL if step % 10 == 9 else smdebug.modes.TRAIN
            with hook.step(mode):
                hook.record("loss", float(step))
                for name in ("m.v", "m.w"):
                    hook.record(name, np.full(4, step + (name == "m.w"), np.float32))
    reader = RunReader(str(place))
    while reader.advance(10):
        pass
    return reader


def answers_of(run, **options):
    """The answers by the end of their addresses."""
    found = content_of("a", run, **options)
    prefix = f"run/{id_in_report(run)}"
    return {key.removeprefix(prefix): value for key, value in found.answers.items()}


def block_of(answer, part):
    shape = (len(COLUMNS), len(answer["names"]), len(answer["first"]))
    return np.frombuffer(base64.b64decode(answer[part]), "<f4").reshape(shape)


def test_a_report_has_every_answer_of_the_page(run):
    done = []
    answers = answers_of(run, progress=done.append)
    assert {"", "/about", "/facts", "/log", "/logged", "/series/loss", "/series/loss/TRAIN"} <= set(answers)
    assert {"/series/loss/EVAL", "/kind/tensors", "/numbers/tensors", "/at/tensors/m.v"} <= set(answers)
    assert "/ranks" not in answers
    assert done
    series = answers["/series/loss"]
    assert (series["exact"], series["last"], series["high"], series["not_finite"]) == (True, None, None, None)
    assert series["low"] == [float(step) for step in range(30)]
    assert answers["/at/tensors/m.v"]["step"] == 29
    assert answers["/at/tensors/m.v"]["values"]["rows"] == [[29.0] * 4]


def test_a_report_that_reads_no_values_has_those_answers_alone_that_need_none(run):
    answers = answers_of(run, reads_values=False)
    assert set(answers) == {"", "/about", "/facts", "/log", "/logged"}


def test_the_statistics_of_all_steps_are_one_block(run):
    answer = answers_of(run)["/kind/tensors"]
    assert (answer["names"], answer["tensors"], answer["folded"]) == (["m.v", "m.w"], 2, False)
    assert answer["first"] == answer["last"] == list(range(30))
    assert answer["high"] is None
    low = block_of(answer, "low")
    np.testing.assert_array_equal(low[COLUMN["max"]], [np.arange(30), np.arange(30) + 1])


def test_a_block_has_as_many_columns_as_there_is_room_for(run, monkeypatch):
    monkeypatch.setattr(content, "MOST_BYTES", 4 * len(COLUMNS) * 2 * 10)
    monkeypatch.setattr(content, "_FEWEST_COLUMNS", 5)
    answer = answers_of(run)["/kind/tensors"]
    assert (answer["first"], answer["last"][-1]) == (list(range(0, 30, 3)), 29)
    low, high = block_of(answer, "low"), block_of(answer, "high")
    np.testing.assert_array_equal(low[COLUMN["max"], 0], np.arange(0, 30, 3))
    np.testing.assert_array_equal(high[COLUMN["max"], 1], np.arange(3, 31, 3))


def test_rows_are_folded_where_there_is_no_room_for_all(run, monkeypatch):
    monkeypatch.setattr(content, "MOST_BYTES", 4 * len(COLUMNS) * 2 * 24)
    answer = answers_of(run)["/kind/tensors"]
    assert (answer["names"], answer["folded"], answer["tensors"]) == (["m (2 tensors)"], True, 2)
    low, high = block_of(answer, "low"), block_of(answer, "high")
    assert len(answer["first"]) == 30
    np.testing.assert_array_equal(high[COLUMN["max"], 0] - low[COLUMN["max"], 0], np.ones(30))


def test_values_are_left_out_before_tensors_are(run, monkeypatch):
    whole = answers_of(run)
    sizes = [len(json.dumps(whole[f"/at/tensors/m.{name}"])) for name in "vw"]
    bare = len(json.dumps({**whole["/at/tensors/m.w"], "values": None}))
    for room, values in (
        (sum(sizes), [True, True]),
        (sum(sizes) - 1, [True, False]),
        (sizes[0] + bare - 1, [True]),
    ):
        monkeypatch.setattr(content, "MOST_BYTES_AT_STEPS", room)
        answers = answers_of(run)
        found = [answers[key]["values"] is not None for key in answers if key.startswith("/at/")]
        assert found == values, room


def test_a_tensor_at_its_last_step_is_shown_up_to_a_number(run, monkeypatch):
    monkeypatch.setattr(content, "_MOST_AT_STEPS", 1)
    assert [key for key in answers_of(run) if key.startswith("/at/")] == ["/at/tensors/m.v"]


def test_scalars_have_as_many_points_as_there_is_room_for(run, monkeypatch):
    monkeypatch.setattr(content, "_FEWEST_POINTS", 2)
    monkeypatch.setattr(content, "_POINTS_OF_ALL", 7)
    series = answers_of(run)["/series/loss"]
    assert (len(series["low"]), series["exact"], series["high"][-1]) == (6, False, 29.0)
    monkeypatch.setattr(content, "MOST_POINTS", 3)
    assert len(answers_of(run)["/series/loss"]["low"]) == 3
    monkeypatch.setattr(content, "MOST_SERIES", 0)
    answers = answers_of(run)
    assert "/series/loss" not in answers
    assert answers[""]["series"] == []


def test_a_comparison_has_the_answers_of_both_runs(run, tmp_path):
    other_place = tmp_path / "b"
    with smdebug.Hook(str(other_place), save_all=True) as hook, hook.step():
        hook.record("loss", 1.0)
    other = RunReader(str(other_place))
    while other.advance(10):
        pass
    found = content_of("a", run, other=("b", other), comparison={"runs": []})
    ids = [id_in_report(each) for each in (run, other)]
    assert found.answers[f"compare/{ids[0]},{ids[1]}"] == {"runs": []}
    assert {f"run/{ids[0]}", f"run/{ids[1]}", f"run/{ids[1]}/about"} <= set(found.answers)
    assert (found.name, found.other["id"], content_of("a\n", run).name) == ("a", ids[1], "a\\n")
    assert content_of("a", run).other is None


def test_a_run_that_is_not_open_yet_has_no_report(tmp_path):
    with pytest.raises(SMDebugRuntimeError, match="The list of steps is being read"):
        content_of("a", RunReader(str(tmp_path)))
