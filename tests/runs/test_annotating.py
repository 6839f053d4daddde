"""Tags, notes and pins that people give to a run: kept beside it, read by everything that lists runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from smdebug.exceptions import AccessDenied, DamagedFile, SMDebugRuntimeError
from smdebug.runs.conditions import parse_condition
from smdebug.runs.listing import list_runs
from smdebug.runs.requests.annotating import annotate, annotations_of
from smdebug.runs.verifying import verify
from smdebug.saving.place.finished import remove_run
from smdebug.storage import open_storage
from smdebug.trials import create_trial
from tests.ui.written_runs import WrittenRun


@pytest.fixture
def storage(tmp_path):
    WrittenRun(tmp_path / "runs" / "a", tags=["sweep"], note="first").write(3, end=True)
    WrittenRun(tmp_path / "runs" / "b").write(3, end=True)
    return open_storage(tmp_path / "runs" / "a")


def test_they_are_searched_and_listed_like_those_of_the_training(storage, tmp_path):
    known = annotations_of(storage)
    assert (known.tags, known.note, known.version) == (("sweep",), "first", "")
    annotate(storage, {"tags": ["paper"], "pinned": True}, known.version)
    where = [parse_condition(text) for text in ("tag=paper", "pinned=true", "note=first")]
    assert [run.name for run in list_runs(str(tmp_path / "runs"), where=where)] == ["a"]
    assert list_runs(str(tmp_path / "runs"), where=[parse_condition("tags=sweep")]) == []
    assert json.loads(storage.read("origin.json"))["tags"] == ["sweep"]  # as the training wrote it


def test_a_change_of_an_older_version_is_refused_and_loses_nothing(storage):
    seen = annotations_of(storage).version
    annotate(storage, {"note": "mine"}, seen)
    with pytest.raises(SMDebugRuntimeError, match="were changed meanwhile"):
        annotate(storage, {"note": "theirs"}, seen)
    assert annotations_of(storage).note == "mine"


def test_a_damaged_file_is_reported_and_not_written_over(storage, tmp_path):
    storage.write("annotations.json", b"{")
    with pytest.raises(DamagedFile, match=r"annotations\.json"):
        annotate(storage, {"note": "mine"}, "")
    assert storage.read("annotations.json") == b"{"
    trial = create_trial(tmp_path / "runs" / "a")
    assert trial.origin.tags == ("sweep",)
    assert [problem.file for problem in verify(tmp_path / "runs" / "a").problems] == ["annotations.json"]


def test_a_place_that_cannot_be_written_says_so(storage, monkeypatch):
    def refused(key, data):
        raise AccessDenied(key, "the file system is read-only")

    monkeypatch.setattr(storage, "write", refused)
    with pytest.raises(SMDebugRuntimeError, match="read-only here"):
        annotate(storage, {"note": "mine"}, "")


def test_a_run_without_an_origin_can_have_them(storage, tmp_path):
    storage.delete("origin.json")
    annotate(storage, {"tags": ["old"]}, "")
    assert create_trial(tmp_path / "runs" / "a").origin.tags == ("old",)


def test_they_go_with_a_run_that_is_overwritten(storage):
    annotate(storage, {"note": "mine"}, "")
    remove_run(storage)
    assert list(storage.list("")) == []


ADDING = """
import sys
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.runs.requests.annotating import annotate, annotations_of
from smdebug.storage import open_storage
storage = open_storage(sys.argv[1])
sys.stdin.readline()
for number in range(24):
    while True:
        seen = annotations_of(storage)
        try:
            annotate(storage, {"tags": [*seen.tags, f"{sys.argv[2]}{number}"]}, seen.version)
        except SMDebugRuntimeError:
            continue
        break
"""


def test_no_change_of_two_processes_at_once_is_lost(storage, tmp_path):
    run = str(tmp_path / "runs" / "a")
    both = [
        subprocess.Popen([sys.executable, "-c", ADDING, run, name], stdin=subprocess.PIPE) for name in "xy"
    ]
    for process in both:
        process.stdin.write(b"go\n")
        process.stdin.close()
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    expected = {"sweep", *(f"{name}{number}" for name in "xy" for number in range(24))}
    assert set(annotations_of(storage).tags) == expected
