"""Verdicts in the background, and what a later server takes from the cache."""

from __future__ import annotations

import json
import os
import shutil
import time

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.ui.finding.glance import Glance
from smdebug.ui.watching.board import Board
from smdebug.ui.watching.cache import Cache
from smdebug.ui.watching.checks import AGAIN, MOST_FAILURES, Checks
from smdebug.ui.watching.judging import Judge, Judging
from smdebug.ui.watching.keeping import kept_of
from tests.ui.watching.test_board import listed
from tests.ui.web.test_server import matrix_in
from tests.ui.written_runs import WrittenRun


def failing(step):
    return 2.0 if step < 20 else float("nan")


def glance(**changes):
    return Glance(**{"state": "ended", "steps": 5, "last_saved": 1.0, **changes})


@pytest.fixture
def checks():
    made = Checks()
    made.is_on = True
    return made


def test_the_run_saved_last_is_checked_first_and_each_once(checks):
    runs = {"a": glance(last_saved=3.0), "b": glance(last_saved=9.0), "c": glance(state="gone")}
    order = []
    while (run_id := checks.next(runs, 0.0)) is not None:
        order.append(run_id)
        checks.end(run_id, 0.0, 5)
    assert order == ["b", "a"]
    runs["d"] = glance(issues=1, checked=5)  # known from its page, or from the cache
    assert checks.next(runs, 0.0) is None


def test_a_run_that_grew_is_checked_again_after_a_pause(checks):
    checks.end("a", 0.0, 5)
    grown = {"a": glance(state="training", steps=6, issues=0, checked=5)}
    assert checks.next(grown, AGAIN - 1) is None
    assert checks.next(grown, AGAIN) == "a"


def test_what_fails_is_reported_and_not_tried_again_until_it_changes(checks):
    checks.end("a", 0.0, 5, "damaged")
    assert checks.state_of("a", glance()) == "could not be checked: damaged"
    assert checks.next({"a": glance()}, 99.0) is None
    assert checks.next({"a": glance(steps=6)}, 99.0) == "a"
    for run_id in "bcd"[:MOST_FAILURES]:
        checks.end(run_id, 0.0, 5, "killed")
    assert checks.next({"e": glance()}, 99.0) is None  # something else is wrong


def test_without_the_background_a_run_says_that_its_page_checks_it():
    assert Checks().state_of("a", glance()) == "off"
    assert Checks().next({"a": glance()}, 0.0) is None


def test_verdicts_appear_while_the_list_is_open(serve, tmp_path):
    WrittenRun(tmp_path / "runs" / "good").write(30, end=True)
    WrittenRun(tmp_path / "runs" / "bad", loss=failing).write(30, end=True)
    client = serve(tmp_path / "runs", background=True, cache=Cache(tmp_path / "cache"))
    with client.server.audience.page(("",)):
        while True:
            rows = {row["name"]: row for row in client.get("/api/runs")["runs"]}
            if all(row["check"] == "done" for row in rows.values()):
                break
            time.sleep(0.05)
    assert rows["good"]["issues"] == 0
    assert rows["bad"]["issues"] == 1
    assert "since step 20" in rows["bad"]["issue"]
    assert rows["bad"]["checked"] == 30

    again = serve(tmp_path / "runs", cache=Cache(tmp_path / "cache"))
    rows = {row["name"]: row for row in again.get("/api/runs")["runs"]}
    assert rows["bad"]["issues"] == 1  # nothing of the run was read
    assert rows["bad"]["curve"]


def test_the_process_has_a_low_priority_and_ends_with_the_server(tmp_path):
    WrittenRun(tmp_path / "a").write(3, end=True)
    judge = Judge(Cache(None), ["VanishingGradient"])
    assert judge.judge(str(tmp_path / "a")).state == "ended"
    process = judge._process.pid
    assert os.getpriority(os.PRIO_PROCESS, process) >= 10
    judge.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(SMDebugRuntimeError, match="ending"):
        judge.judge(str(tmp_path / "a"))


def test_a_process_that_dies_is_reported_and_replaced(tmp_path):
    WrittenRun(tmp_path / "a").write(3, end=True)
    judge = Judge(Cache(None), None)
    try:
        judge.judge(str(tmp_path / "a"))
        judge._process.kill()
        with pytest.raises(SMDebugRuntimeError, match="ended"):
            judge.judge(str(tmp_path / "a"))
        assert judge.judge(str(tmp_path / "a")).steps == 3
    finally:
        judge.stop()


def test_a_run_that_grows_is_read_on_and_not_again(tmp_path):
    run = WrittenRun(tmp_path / "a", loss=failing).write(10)
    judging = Judging(Cache(tmp_path / "cache"), None)
    assert judging.judge(str(tmp_path / "a")).issues == 0
    (reader,) = judging._readers.values()
    for event in (tmp_path / "a" / "events").glob("*/*"):
        event.unlink()  # what was read is not needed again
    run.write(15)
    found = judging.judge(str(tmp_path / "a"))
    assert (found.issues, found.since, found.steps) == (1, 20, 25)
    assert next(iter(judging._readers.values())) is reader


@pytest.fixture
def kept(tmp_path):
    """A run that a process has read and kept, with its answers."""
    cache = Cache(tmp_path / "cache")
    WrittenRun(tmp_path / "runs" / "a", loss=failing, tensors=6).write(40, end=True)
    Judging(cache, None).judge(str(tmp_path / "runs" / "a"))
    return cache


def answers_of(client, run_id):
    run = client.get(f"/api/run/{run_id}")
    matrix = client.ask(f"/api/run/{run_id}/matrix?kind=gradients&statistic=rms")[2]
    header, cells = matrix_in(matrix)
    others = ("rows?kind=gradients", "series?name=loss", "log", "facts")
    found = [client.get(f"/api/run/{run_id}/{path}") for path in others]
    del run["version"]
    for rule in run["rules"]:
        del rule["seconds"]  # of another evaluation
    return run, header, cells.tolist(), found


def test_a_later_server_shows_charts_and_diagnosis_without_reading_the_run(serve, tmp_path, kept):
    fresh = serve(tmp_path / "runs")
    expected = answers_of(fresh, fresh.run())
    client = serve(tmp_path / "runs", cache=kept)
    row = client.server.board.rows[0]
    while client.server.board.work([], list_is_open=True) == 0:
        pass
    reader = client.server.board.reader(row.id)
    assert reader.trial is None
    found = answers_of(client, row.id)
    assert found[0]["issues"][0]["since"] == 20
    assert found == expected
    while reader.advance(1.0):
        pass
    assert reader.following is None  # nothing was evaluated again
    assert answers_of(client, row.id) == expected
    here = client.get(f"/api/run/{row.id}/at?kind=gradients&name=blocks.0.weight&step=3")
    assert here["workers"]


def test_a_kept_run_that_continued_is_read_on(serve, tmp_path):
    cache = Cache(tmp_path / "cache")
    run = WrittenRun(tmp_path / "runs" / "a", loss=failing).write(10)
    Judging(cache, None).judge(str(tmp_path / "runs" / "a"))
    run.write(20, end=True)
    client = serve(tmp_path / "runs", cache=cache)
    run_id = client.run()
    found = client.get(f"/api/run/{run_id}")
    assert (found["steps_read"], found["steps_checked"], found["issues"][0]["since"]) == (
        30,
        30,
        20,
    )
    assert client.get(f"/api/run/{run_id}/series?name=loss")["total"] == 30


def test_another_run_in_the_same_place_is_not_taken_for_the_kept_one(serve, tmp_path, kept):
    shutil.rmtree(tmp_path / "runs" / "a")
    WrittenRun(tmp_path / "runs" / "a", tensors=2).write(5, end=True)
    assert kept_of(kept, str(tmp_path / "runs" / "a")) is None
    client = serve(tmp_path / "runs", cache=kept)
    found = client.get(f"/api/run/{client.run()}")
    assert (found["steps"], found["issues"]) == (5, [])


@pytest.mark.parametrize("damage", [b"", b"\n", b"{}\nPK", None])
def test_a_damaged_file_of_the_cache_is_not_a_loss(serve, tmp_path, kept, damage):
    for file in (tmp_path / "cache").glob("charts-*"):
        data = file.read_bytes()
        cut = data[: len(data) // 2] + bytes(len(data) - len(data) // 2)
        file.write_bytes(cut if damage is None else damage)
    client = serve(tmp_path / "runs", cache=kept)
    assert client.get(f"/api/run/{client.run()}")["steps_read"] == 40


def test_what_is_too_large_is_not_kept(tmp_path):
    WrittenRun(tmp_path / "a", tensors=50).write(20, end=True)
    cache = Cache(tmp_path / "cache", most_bytes=4 * 40_000)
    Judging(cache, None).judge(str(tmp_path / "a"))
    assert not list((tmp_path / "cache").glob("charts-*"))


def test_a_glance_survives_json():
    known = glance(curve=(1.0, None), configuration={"lr": 0.1})
    assert Glance.from_dict(json.loads(json.dumps(known.to_dict()))) == known


def test_the_page_of_a_run_keeps_it_for_the_next_server(tmp_path):
    cache = Cache(tmp_path / "cache")
    WrittenRun(tmp_path / "runs" / "a").write(8, end=True)
    board = Board([str(tmp_path / "runs")], cache=cache)
    listed(board)
    run_id = board.rows[0].id
    while not board.reader(run_id).is_complete:
        board.work([run_id])
    assert kept_of(cache, str(tmp_path / "runs" / "a")).is_complete


def test_a_run_that_no_rule_could_check_has_not_passed(tmp_path):
    hook = smdebug.Hook(
        str(tmp_path / "a"),
        include_regex=["weight"],
        save_config=smdebug.SaveConfig(save_interval=1),
    )
    with hook, hook.step(smdebug.modes.TRAIN):
        hook.record("weight", np.ones(3))
    WrittenRun(tmp_path / "b").write(3, end=True)
    judging = Judging(Cache(None), ["default"])
    assert judging.judge(str(tmp_path / "a")).passed == 0
    assert (judging.judge(str(tmp_path / "b")).passed or 0) > 0
