"""100,000 tensors: rows by module, single tensors on request, bounded memory."""

from __future__ import annotations

import io
from urllib.parse import quote

import numpy as np
import pytest

from smdebug.ui.drawing import charts
from smdebug.ui.drawing.folded_rows import FoldedRows
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.following.kept_runs import Kept
from smdebug.ui.watching.keeping import kept_from
from tests.ui.web.test_server import matrix_in
from tests.ui.written_runs import WrittenRun


def test_tensors_are_folded_by_module_as_deep_as_there_is_room():
    names = [f"blocks.{a}.part{b}.w{c}" for a in range(4) for b in range(5) for c in range(6)]
    by_part = FoldedRows([*names, "head"], most=25)
    assert len(by_part.names) == 21
    assert by_part.names[0] == "blocks.0.part0 (6 tensors)"
    assert by_part.names[-1] == "head"
    assert by_part.members("blocks.0.part1 (6 tensors)") == names[6:12]
    assert by_part.members("unknown") == []
    assert len(FoldedRows(names, most=4).names) == 4
    assert len(FoldedRows(names, most=3).names) == 1


def test_names_without_modules_are_folded_by_neighbours():
    folded = FoldedRows([f"t{number}" for number in range(10)], most=4)
    assert folded.names[0] == "t0 … t2 (3 tensors)"
    assert folded.names[-1] == "t9"
    assert len(folded.names) == 4


def test_a_row_has_the_extremes_of_its_tensors():
    folded = FoldedRows(["a.x", "b", "a.y"], most=2)
    values = np.array([[1, np.nan], [5, 6], [3, 4]], np.float32)
    low, high = folded.extremes(values)
    assert low.tolist() == [[1, 4], [5, 6]]
    assert high.tolist() == [[3, 4], [5, 6]]


def test_a_spike_of_one_tensor_in_100_000_is_kept_within_the_budget():
    names = [f"blocks.{n // 50}.w{n % 50}" for n in range(100_000)]
    kept = charts.Charts()
    values = np.ones((len(names), 16), np.float32)
    for step in range(12):
        changed = values.copy()
        if step == 7:
            changed[61_803] = 1e6
        kept._append_rows("gradients", step, names, changed)
    assert kept.nbytes < 60 << 20
    statistics = kept.kinds["gradients"]
    assert len(statistics.names) == 2000
    window = statistics.window("rms")
    row, column = np.argwhere(window.high == 1e6)[0]
    assert statistics.names[row] == "blocks.1236 (50 tensors)"
    assert window.first[column] == 7
    assert window.low[row, column] == 1
    assert not window.is_exact


def test_rows_of_several_tensors_join_with_their_extremes():
    statistics = Statistics(budget=1, most=8)
    low, high = np.zeros((1, 16), np.float32), np.full((1, 16), 9, np.float32)
    for step in range(20):
        statistics.append(step, ["a"], low, high)
    assert len(statistics) <= 8
    window = statistics.window("max")
    assert set(window.low.ravel()) == {0}
    assert set(window.high.ravel()) == {9}


@pytest.fixture
def many(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(charts, "MOST_TENSORS", 50)
    monkeypatch.setattr("smdebug.ui.drawing.folded_rows.MOST_ROWS", 10)
    names = [f"blocks.{n // 10}.w{n % 10}" for n in range(100)]

    def rms(step):
        return np.where(np.arange(100) == 42, 1.0 * (step == 3), 1e-3)

    WrittenRun(tmp_path / "a", names=names, rms=rms).write(8, end=True)
    client = serve(tmp_path)
    return client, f"/api/run/{client.run()}"


def test_a_page_shows_modules_and_each_tensor_on_request(many):
    client, run = many
    rows = client.get(f"{run}/rows?kind=gradients")
    assert (rows["tensors"], rows["folded"]) == (100, True)
    assert rows["names"][4] == "blocks.4 (10 tensors)"
    header, (low, high) = matrix_in(client.ask(f"{run}/matrix?kind=gradients&statistic=rms")[2])
    assert header["rows"] == 10
    assert high[4, 3] == 1.0
    assert low[4, 3] == pytest.approx(1e-3)
    name = quote(rows["names"][4])
    members = client.get(f"{run}/members?kind=gradients&name={name}")
    assert members == {"names": [f"blocks.4.w{n}" for n in range(10)], "total": 10}
    later = client.get(f"{run}/members?kind=gradients&name={name}&first=8")
    assert later["names"] == ["blocks.4.w8", "blocks.4.w9"]
    whole = client.get(f"{run}/tensor?kind=gradients&name={name}")
    assert not whole["exact"]
    assert whole["high"]["rms"][3] == 1.0
    single = client.get(f"{run}/tensor?kind=gradients&name=blocks.4.w2")
    assert single["high"]["rms"] == pytest.approx([0, 0, 0, 1, 0, 0, 0, 0])
    here = client.get(f"{run}/at?kind=gradients&name=blocks.4.w2&step=3")
    assert here["workers"]["worker_0"]["rms"] == 1.0
    assert client.ask(f"{run}/tensor?kind=gradients&name=blocks.44.w2")[0] == 404


def test_what_is_kept_of_folded_rows_can_be_unfolded(many, tmp_path):
    client, run = many
    reader = client.server.board.reader(run.rpartition("/")[2])
    file = io.BytesIO()
    kept_from(reader).write(file)
    file.seek(0)
    again = Kept.read(file, 1 << 20)
    row = "blocks.4 (10 tensors)"
    assert again.folded["gradients"].members(row) == [f"blocks.4.w{n}" for n in range(10)]
    assert again.kinds["gradients"].names == reader.kinds["gradients"].names
