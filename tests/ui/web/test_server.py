"""What the server answers about runs: whole, growing, damaged, deleted."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import threading
from contextlib import suppress

import numpy as np
import pytest
from uvicorn.protocols.http.auto import AutoHTTPProtocol

import smdebug
from smdebug.files.names import END_MARKER
from smdebug.ui.comparisons import Part, comparison_of
from smdebug.ui.finding.times import clock_note, duration_of
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.cache import Cache
from smdebug.ui.web.serving import UiServer
from tests.ui.written_runs import WrittenRun


def matrix_in(content):
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])
    cells = np.frombuffer(content, "<f4", offset=4 + length)
    return header, cells.reshape(-1, header["rows"], header["columns"])


def test_a_run_is_described_with_its_diagnosis(serve, tmp_path):
    WrittenRun(tmp_path / "a", loss=lambda step: 2.0 if step < 20 else float("nan")).write(40, end=True)
    client = serve(tmp_path)
    run = client.get(f"/api/run/{client.run()}")
    assert (run["name"], run["state"], run["steps"], run["last_step"]) == ("a", "ended", 40, 39)
    assert run["steps_read"] == run["steps_checked"] == 40
    issue = run["issues"][0]
    assert issue["since"] == 20
    assert issue["headline"].endswith("since step 20")
    assert dict(issue["parts"])["Try"]
    listed = client.get("/api/runs")["runs"][0]
    assert listed["state"] == "unknown"  # nobody looked at the list yet
    client.server.board.work([], list_is_open=True)
    listed = client.get("/api/runs")["runs"][0]
    assert (listed["state"], listed["steps"], listed["loss_name"]) == ("ended", 40, "loss")


def test_a_spike_is_in_the_series_and_in_the_matrix(serve, tmp_path):
    def rms(step):
        return np.full(8, 1e-3) * (1000 if step == 200 else 1)

    run = WrittenRun(
        tmp_path / "a",
        loss=lambda step: 50.0 if step == 1234 else 1.0,
        rms=rms,
        saved=range(0, 3000, 10),
    )
    run.write(2991, end=True)
    client = serve(tmp_path)
    run_id = client.run()
    series = client.get(f"/api/run/{run_id}/series?name=loss&points=20")
    assert series["total"] == 2991
    assert len(series["high"]) <= 21
    assert max(series["high"]) == 50.0
    path = f"/api/run/{run_id}/matrix?kind=gradients&statistic=rms&points=7"
    header, cells = matrix_in(client.ask(path)[2])
    assert header["columns"] <= 7
    assert cells[-1].max() == 1.0
    assert cells.shape[1] == 8


def test_a_new_step_is_read_from_a_run_that_grows(serve, tmp_path):
    run = WrittenRun(tmp_path / "a").write(5)
    client = serve(tmp_path)
    run_id = client.run()
    before = client.get(f"/api/run/{run_id}")
    assert (before["state"], before["last_step"]) == ("training", 4)
    run.write(3, end=True)
    client.run()
    after = client.get(f"/api/run/{run_id}")
    assert (after["state"], after["last_step"]) == ("ended", 7)
    assert after["version"] > before["version"]


def test_a_tensor_has_a_history_and_values_per_worker(serve, tmp_path):
    WrittenRun(tmp_path / "a").write(6, end=True)
    client = serve(tmp_path)
    run_id = client.run()
    names = client.get(f"/api/run/{run_id}/rows?kind=gradients")["names"]
    history = client.get(f"/api/run/{run_id}/tensor?kind=gradients&name={names[0]}")
    assert history["exact"]
    assert len(history["high"]["rms"]) == 6
    here = client.get(f"/api/run/{run_id}/at?kind=gradients&name={names[0]}&step=3")
    assert here["workers"]["worker_0"]["rms"] == pytest.approx(history["high"]["rms"][3])
    assert here["values"] is None


def test_a_run_of_saved_tensors_has_a_heat_map_too(serve, tmp_path):
    config = smdebug.SaveConfig(save_interval=1)
    hook = smdebug.Hook(str(tmp_path / "a"), save_all=True, save_config=config)
    for step in range(5):
        with hook.step():
            hook.save_tensor("loss", np.float32(step), "losses")
            hook.save_tensor("fc.weight", np.full((4, 4), step, np.float32), "weights")
    hook.close()
    client = serve(tmp_path)
    run_id = client.run()
    assert client.get(f"/api/run/{run_id}/series?name=loss")["high"] == [0, 1, 2, 3, 4]
    history = client.get(f"/api/run/{run_id}/tensor?kind=weights&name=fc.weight")
    assert history["high"]["max"] == [0, 1, 2, 3, 4]
    here = client.get(f"/api/run/{run_id}/at?kind=weights&name=fc.weight&step=2")
    assert here["values"]["rows"][0] == [2, 2, 2, 2]


def test_names_with_markup_and_control_characters_are_escaped_and_found(serve, tmp_path):
    name = "fc<script>alert(1)</script>\x1b[31m.weight"
    WrittenRun(tmp_path / "<b>run", names=[name, "b"]).write(3, end=True)
    client = serve(tmp_path)
    run_id = client.run()
    shown = client.get(f"/api/run/{run_id}/rows?kind=gradients")["names"]
    assert "\x1b" not in "".join(shown)
    from urllib.parse import quote

    answer = client.get(f"/api/run/{run_id}/tensor?kind=gradients&name={quote(shown[0])}")
    assert len(answer["first"]) == 3


def test_a_damaged_step_is_named_and_the_others_are_shown(serve, tmp_path):
    WrittenRun(tmp_path / "a").write(6, end=True)
    event = next((tmp_path / "a" / "events").glob("*3/*"))
    event.write_bytes(event.read_bytes()[:40] + b"\xff" * 60 + event.read_bytes()[100:])
    client = serve(tmp_path)
    run = client.get(f"/api/run/{client.run()}")
    assert run["steps_read"] == 6
    assert any("step 3" in place for place, _ in run["damaged"])
    assert len(client.get(f"/api/run/{run['id']}/series?name=loss")["high"]) >= 5


def test_missing_steps_are_named_on_the_page_of_the_run_and_in_comparisons(serve, tmp_path):
    for name in ("a", "whole"):
        WrittenRun(tmp_path / name).write(6, end=True)
    next((tmp_path / "a" / "index").rglob("*3_worker_0.json")).unlink()
    client = serve(tmp_path)
    ids = [client.run("a"), client.run("whole")]
    run = client.get(f"/api/run/{ids[0]}")
    assert (run["missing"], run["steps_read"]) == ("1 step is missing (first: 3)", 5)
    compared = client.get(f"/api/compare?runs={','.join(ids)}")["runs"]
    assert [part["missing"] for part in compared] == [run["missing"], ""]


def test_runs_that_are_not_open_yet_are_compared_with_what_the_list_knows_of_them(tmp_path):
    parts = [
        Part("1", "a", RunReader(str(tmp_path / "a")), {"lr": 0.1, "seed": 1}),
        Part("2", "b", RunReader(str(tmp_path / "b")), {"lr": 0.2, "seed": 1}),
    ]
    found = comparison_of(parts)
    assert found["configuration"] == [{"name": "lr", "values": [0.1, 0.2]}]
    assert [run["ready"] for run in found["runs"]] == [False, False]


def test_a_run_that_was_deleted_is_reported_as_gone(serve, tmp_path):
    for name in ("a", "b"):
        WrittenRun(tmp_path / name).write(3, end=True)
    client = serve(tmp_path)
    run_id = client.run("a")
    shutil.rmtree(tmp_path / "a")
    client.server.board.find_runs(patience=0)
    row = next(row for row in client.get("/api/runs")["runs"] if row["name"] == "a")
    assert (row["state"], row["error"]) == ("gone", "The run was deleted.")
    assert client.get(f"/api/run/{run_id}")["steps"] == 3  # what was read stays


def test_an_empty_place_and_wrong_questions_are_answered_in_words(serve, tmp_path):
    client = serve(tmp_path / "nothing-yet")
    assert [row["name"] for row in client.get("/api/runs")["runs"]] == ["nothing-yet"]
    run_id = client.run()
    run = client.get(f"/api/run/{run_id}")
    assert "There is no run at" in run["error"]
    for path, status in (
        (f"run/{run_id}/series?name=loss", 404),
        (f"run/{run_id}/matrix?kind=gradients", 404),
        (f"run/{run_id}/series?name=loss&first=-3", 400),
        ("run/unknown", 404),
        ("compare?runs=one", 400),
        ("nothing", 404),
    ):
        found, _, content = client.ask(f"/api/{path}")
        assert found == status, path
        assert json.loads(content)["error"]


def test_two_runs_are_compared_step_by_step(serve, tmp_path):
    def rms(step):
        values = np.full(8, 1e-3)
        values[5] *= 1 + 0.5 * (step >= 12)
        return values

    WrittenRun(tmp_path / "a", rms=lambda step: np.full(8, 1e-3)).write(20, end=True)
    WrittenRun(tmp_path / "b", rms=rms).write(20, end=True)
    client = serve(tmp_path)
    ids = [client.run("a"), client.run("b")]
    found = client.get(f"/api/compare?runs={','.join(ids)}")
    assert found["runs"][0]["divergence"] is None
    divergence = found["runs"][1]["divergence"]
    assert (divergence["step"], divergence["tensor"]) == (12, "blocks.2.bias")
    assert divergence["rms"] == pytest.approx([1e-3, 1.5e-3])
    assert found["series"] == ["loss"]


def test_values_are_exported_as_csv(serve, tmp_path):
    WrittenRun(tmp_path / "a", loss=float).write(3, end=True)
    client = serve(tmp_path)
    _, headers, content = client.ask(f"/api/run/{client.run()}/export.csv?name=loss")
    assert content.decode().split() == ["step,loss", "0,0.0", "1,1.0", "2,2.0"]
    assert headers["content-disposition"].startswith("attachment")


def test_a_server_stops_while_pages_are_open_and_a_request_waits_for_ever(serve, tmp_path):
    WrittenRun(tmp_path / "a").write(3)
    client = serve(tmp_path)
    run_id = client.run()
    reader = client.server.board.reader(run_id)
    connections = []
    for path in ("/api/events", f"/api/events?runs={run_id}", f"/api/run/{run_id}/facts"):
        connection = http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=60)
        connections.append(connection)
        if "facts" in path:
            reader.lock.acquire()  # as if storage did not answer
        connection.request("GET", path, headers={"x-smdebug-token": client.server.token})
        if "events" in path:
            assert connection.getresponse().readline().startswith(b"data: ")
    client.get("/api/runs")  # the requests before it have arrived
    try:
        client.server.stop()
        left = [thread for thread in threading.enumerate() if thread.name.startswith("smdebug-ui")]
        assert not [thread for thread in left if not thread.daemon]
        assert "smdebug-ui" not in [thread.name for thread in left]
        with pytest.raises(OSError, match="refused"):
            client.ask("/")
    finally:
        reader.lock.release()
        for connection in connections:
            connection.close()


def test_a_connection_that_comes_while_the_server_stops_is_closed(serve, tmp_path, monkeypatch):
    client = serve(tmp_path)
    with socket.create_connection(("127.0.0.1", client.server.port), timeout=60) as late:
        client.get("/api/runs")  # the connection before it is known
        monkeypatch.setattr(AutoHTTPProtocol, "shutdown", lambda connection: None)  # none is asked to end
        client.server.stop()
        with suppress(ConnectionResetError):
            assert late.recv(1) == b""


def test_a_server_that_was_never_started_can_be_stopped(tmp_path):
    server = UiServer([str(tmp_path)], cache=Cache(None))
    server.stop()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_a_long_run_is_shown_while_it_is_read(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("smdebug.ui.following.reopening.INDEX_FILES", 10)
    WrittenRun(tmp_path / "a").write(35, end=True)
    client = serve(tmp_path)
    run_id = client.get("/api/runs")["runs"][0]["id"]
    reader = client.server.board.reader(run_id)
    reader.advance(10)
    begun = client.get(f"/api/run/{run_id}")
    assert (begun["state"], begun["listing"]) == ("reading", True)
    assert 10 <= begun["steps_read"] < 35
    assert begun["steps_checked"] == 0
    drawn = client.get(f"/api/run/{run_id}/series?name=loss")
    assert drawn["total"] == begun["steps_read"]
    client.run()
    whole = client.get(f"/api/run/{run_id}")
    assert (whole["state"], whole["listing"]) == ("ended", False)
    assert whole["steps_read"] == whole["steps_checked"] == 35


def test_a_training_that_was_started_again_replaces_what_was_read(serve, tmp_path):
    failing = WrittenRun(tmp_path / "a", loss=lambda step: 1.0 if step < 6 else float("nan"), tensors=4)
    failing.write(12, end=True)
    (tmp_path / "a" / END_MARKER).unlink()  # as if it had been killed
    client = serve(tmp_path)
    run_id = client.run()
    assert client.get(f"/api/run/{run_id}")["issues"]
    WrittenRun(tmp_path / "a", loss=lambda step: 5.0, tensors=4).write(3, end=True)
    for _ in range(40):  # a training that was started again is noticed after a while without news
        client.run()
    run = client.get(f"/api/run/{run_id}")
    assert (run["last_step"], run["issues"]) == (2, []), "it is judged anew"
    assert client.get(f"/api/run/{run_id}/series?name=loss")["high"] == [5.0, 5.0, 5.0]
    assert any("started again" in note for note in run["notes"])


def test_a_clock_that_was_set_back_is_reported_and_no_duration_is_negative(serve, tmp_path):
    for name, shift in (("a", -3 * 86_400), ("b", 3 * 86_400)):
        WrittenRun(tmp_path / name).write(5, end=True)
        file = sorted((tmp_path / name / "index").glob("*/*"))[-1]
        index = json.loads(file.read_text())
        index["meta"]["saved_at"] += shift
        index["meta"].pop("file_crc32c", None)
        file.write_text(json.dumps(index))
    client = serve(tmp_path)
    board = client.server.board
    while board.work([]) == 0:
        pass
    rows = {row["name"]: row for row in client.get("/api/runs")["runs"]}
    assert rows["a"]["duration"] is None
    assert "its last step was saved 3 days before its first one" in rows["a"]["note"]
    assert rows["b"]["duration"] > 0
    assert "3 days in the future" in rows["b"]["note"]
    assert client.get(f"/api/run/{client.run('a')}")["notes"] == [rows["a"]["note"]]
    assert duration_of(3.0, 9.0) == 6.0
    assert clock_note(1.0, 2.0, 1.0) == ""


def test_waiting_for_a_server_ends_when_it_was_stopped(serve, tmp_path):
    WrittenRun(tmp_path / "a").write(1)
    client = serve(tmp_path)
    waiting = threading.Thread(target=client.server.wait, daemon=True)
    waiting.start()
    assert client.get("/api/runs")["runs"]
    assert waiting.is_alive()
    client.server.stop()
    waiting.join(30)
    assert not waiting.is_alive()
