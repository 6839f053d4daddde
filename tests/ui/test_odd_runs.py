"""Runs that are deleted, renamed, damaged or oddly named while pages are open."""

from __future__ import annotations

import http.client
import json
import shutil
from urllib.parse import quote

import pytest

from smdebug.ui.watching.board import Board
from tests.ui.watching.test_board import Clock, listed
from tests.ui.written_runs import WrittenRun


def opened(board, run_id):
    """Do what is due for an open page, until nothing is."""
    while board.work([run_id]) == 0:
        pass
    return board.reader(run_id)


def test_a_run_that_is_deleted_while_its_page_is_open_is_reported_as_gone(tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(4)
    WrittenRun(tmp_path / "b").write(4)
    board = Board([str(tmp_path)], clock=clock)
    board.find_runs()
    run_id = next(row.id for row in board.rows if row.name == "a")
    version = opened(board, run_id).version
    shutil.rmtree(tmp_path / "a")
    clock.now += 40
    reader = opened(board, run_id)
    assert reader.notes["gone"].startswith("The run was deleted.")
    assert reader.version > version
    assert len(reader.series["loss"]) == 4  # what was read stays
    assert board.row(run_id).glance.state == "gone"


def test_a_renamed_run_is_found_under_its_new_name(tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(4, end=True)
    WrittenRun(tmp_path / "x").write(1, end=True)
    board = Board([str(tmp_path)], clock=clock)
    listed(board)
    (tmp_path / "a").rename(tmp_path / "b")
    clock.now += 6
    states = {name: glance.state for name, glance in listed(board).items()}
    assert states == {"a": "gone", "b": "ended", "x": "ended"}
    (tmp_path / "b").rename(tmp_path / "a")
    clock.now += 6
    states = {name: glance.state for name, glance in listed(board).items()}
    assert states == {"a": "ended", "b": "gone", "x": "ended"}


def test_a_run_that_is_replaced_after_its_end_is_read_again(tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(6, end=True)
    WrittenRun(tmp_path / "b").write(1, end=True)
    board = Board([str(tmp_path)], clock=clock)
    board.find_runs()
    run_id = next(row.id for row in board.rows if row.name == "a")
    assert len(opened(board, run_id).steps) == 6
    shutil.rmtree(tmp_path / "a")
    WrittenRun(tmp_path / "a", loss=float).write(3, end=True)
    clock.now += 40
    reader = opened(board, run_id)
    assert len(reader.steps) == 3
    assert reader.series["loss"].values.tolist() == [0.0, 1.0, 2.0]
    assert listed(board)["a"].steps == 3


ODD = ["<b>&\"'", "new\nline", "esc\x1b[31m", "\u202etxt", "ünï-日本", "q?a=b#c&d%2f", " "]


@pytest.mark.parametrize("name", ODD)
def test_any_name_is_shown_on_one_line_and_can_be_asked_for(serve, tmp_path, name):
    WrittenRun(tmp_path / f"x{name}", names=[f"a{name}.w", "b"]).write(3, end=True)
    client = serve(tmp_path)
    run_id = client.run()
    run = client.get(f"/api/run/{run_id}")
    shown = client.get(f"/api/run/{run_id}/rows?kind=gradients")["names"]
    for text in (run["name"], run["path"], *shown):
        assert text.isprintable() or "\u202e" in text
        assert "\n" not in text
        assert "\x1b" not in text
    first = next(each for each in shown if each.startswith("a"))
    found = client.get(f"/api/run/{run_id}/tensor?kind=gradients&name={quote(first, safe='')}")
    assert found["name"] == first
    assert len(found["first"]) == 3


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("collections/000000000/worker_0_collections.json", b"{"),
        ("index/000000000/000000000001_worker_0.json", b"\xff\x00"),
        ("rules.json", b"[{]"),
        ("origin.json", b"null"),
        ("training_job_end.ts", b"\x00"),
    ],
)
def test_a_damaged_file_is_reported_and_the_other_run_is_shown(serve, tmp_path, file, content):
    for name in ("a", "b"):
        WrittenRun(tmp_path / name).write(4, end=True)
    (tmp_path / "a" / file).write_bytes(content)
    client = serve(tmp_path)
    board = client.server.board
    while board.work([]) == 0:
        pass
    rows = {row["name"]: row for row in client.get("/api/runs")["runs"]}
    assert rows["b"]["state"] == "ended"
    run = client.get(f"/api/run/{client.run('a')}")
    if "collections" in file:
        assert run["state"] == "unreadable"
        assert "worker_0_collections.json" in run["error"]
    else:
        assert run["steps_read"] >= 3
    if "rules" in file:
        assert any(place == "rules" for place, _ in run["damaged"])


def test_a_list_and_a_run_can_be_open_in_two_browsers(serve, tmp_path):
    run = WrittenRun(tmp_path / "a").write(3)
    client = serve(tmp_path)
    run_id = client.run()
    streams = []
    for path in ("/api/events", f"/api/events?runs={run_id}", f"/api/events?runs={run_id}"):
        connection = http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=60)
        connection.request("GET", path, headers={"x-smdebug-token": client.server.token})
        streams.append((connection, connection.getresponse()))

    def event(answer):
        while not (line := answer.readline()).startswith(b"data: "):
            assert line
        return json.loads(line[6:])

    begun = [event(answer) for _, answer in streams]
    assert "list" in begun[0]
    run.write(2)
    for at in (1, 2):
        while event(streams[at][1])["runs"][run_id] <= begun[at]["runs"][run_id]:
            pass
    while client.get(f"/api/run/{run_id}")["last_step"] != 4:
        event(streams[1][1])
    while next(iter(client.get("/api/runs")["runs"]))["last_step"] != 4:
        event(streams[0][1])
    for connection, _ in streams:
        connection.close()
