"""A long run that an earlier server has read: shown at once, and listed again in slices."""

from __future__ import annotations

import shutil

import pytest

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.ui.following import reopening
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching import cache as caches
from smdebug.ui.watching.cache import Cache
from smdebug.ui.watching.judging import Judging
from smdebug.ui.watching.keeping import CHARTS, kept_of
from tests.ui.written_runs import WrittenRun

AT_A_TIME = 8


@pytest.fixture
def read(tmp_path, monkeypatch):
    """A run of 40 steps that was read and kept; its index files are listed 8 at a time."""
    monkeypatch.setattr(reopening, "INDEX_FILES", AT_A_TIME)
    run = WrittenRun(tmp_path / "a").write(40, end=True)
    cache = Cache(tmp_path / "cache")
    Judging(cache, None).judge(str(tmp_path / "a"))
    return run, cache, str(tmp_path / "a")


def test_what_was_kept_is_shown_while_the_steps_are_listed_in_slices(read):
    _, cache, path = read
    reader = RunReader(path, kept=kept_of(cache, path))
    for _ in range(40 // AT_A_TIME - 1):
        assert reader.advance(1.0)
        assert reader.trial is None
        assert (len(reader.steps), reader.steps_read, reader.steps_checked) == (40, 40, 40)
        assert reader.is_complete
        assert reader.is_behind
    while reader.advance(1.0):
        pass
    assert reader.trial.steps() == list(range(40))
    assert reader.is_complete
    assert reader.following is None  # nothing was evaluated again


def test_another_run_is_noticed_while_its_steps_are_listed(read, tmp_path):
    _, cache, path = read
    kept = kept_of(cache, path)
    for file in (tmp_path / "a" / "index").glob("*/000000000020_*"):
        file.unlink()
    reader = RunReader(path, kept=kept)
    while reader.advance(1.0):
        pass
    assert reader.steps_read == reader.steps_checked == 39
    assert len(reader.series["loss"]) == 39


def test_missing_steps_are_kept_and_shown_with_the_rest(tmp_path):
    WrittenRun(tmp_path / "a").write(10, end=True)
    next((tmp_path / "a" / "index").rglob("*5_worker_0.json")).unlink()
    cache, path = Cache(tmp_path / "cache"), str(tmp_path / "a")
    glance = Judging(cache, None).judge(path)
    assert glance.missing == kept_of(cache, path).missing == "1 step is missing (first: 5)"
    assert RunReader(path, kept=kept_of(cache, path)).missing == glance.missing


def test_a_run_that_is_deleted_while_its_steps_are_listed_stays_on_the_page(read, tmp_path):
    _, cache, path = read
    reader = RunReader(path, kept=kept_of(cache, path))
    reader.advance(1.0)
    shutil.rmtree(path)
    while reader.advance(1.0):
        pass
    assert "There is no run at" in reader.error
    assert len(reader.series["loss"]) == 40


def test_rules_that_change_before_the_run_is_open_are_evaluated(read):
    _, cache, path = read
    reader = RunReader(path, kept=kept_of(cache, path))
    reader.use_rules()
    while reader.advance(1.0):
        pass
    assert reader.following is not None
    assert reader.is_complete


def test_a_file_that_cannot_be_written_leaves_the_older_one(read, tmp_path):
    _, cache, path = read
    (before,) = [file.read_bytes() for file in (tmp_path / "cache").glob("charts-*")]

    def fails(file):
        file.write(b"half")
        raise SMDebugRuntimeError("removed meanwhile")

    with pytest.raises(SMDebugRuntimeError):
        cache.put_content(CHARTS, path, "1", fails)
    assert [file.read_bytes() for file in (tmp_path / "cache").glob("charts-*")] == [before]
    assert not list((tmp_path / "cache").glob("*.tmp"))


def test_what_another_version_has_kept_is_ignored(read, monkeypatch):
    _, cache, path = read
    monkeypatch.setattr(caches, "_VERSION", caches._VERSION + 1)
    assert kept_of(cache, path) is None
