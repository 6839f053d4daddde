from __future__ import annotations

import os

import pytest

from smdebug.exceptions import (
    StorageError,
)
from smdebug.storage.folder import WORTH_MAPPING, FolderStorage
from tests.support.trees import files_below

KEY = "events/000000000000/000000000000_worker_0.tfevents"


@pytest.fixture
def run(tmp_path) -> FolderStorage:
    return FolderStorage(tmp_path / "run")


def test_the_run_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "real")
    run = FolderStorage(tmp_path / "run")
    run.write(KEY, b"x")
    assert run.read(KEY) == b"x"
    assert list(run.list("events/")) == [KEY]
    assert (tmp_path / "real" / KEY).exists()
    assert run.location == str(tmp_path / "run")


def test_the_link_to_the_run_may_change_its_target(tmp_path):
    for name in ("one", "two"):
        FolderStorage(tmp_path / name).write("key", name.encode())
    link = tmp_path / "run"
    link.symlink_to("one")
    run = FolderStorage(link)
    assert run.read("key") == b"one"
    link.unlink()
    link.symlink_to("two")
    assert run.read("key") == b"two"


def test_a_link_that_stays_inside_is_followed(run, tmp_path):
    run.write("events/real", b"x")
    (tmp_path / "run/events/link").symlink_to("real")
    (tmp_path / "run/also").symlink_to("events")
    assert run.read("events/link") == b"x"
    assert run.exists("events/link")
    assert run.read("also/real") == b"x"
    assert list(run.list("")) == ["events/link", "events/real"]


@pytest.mark.parametrize("ask", ["read", "view", "size", "exists"])
@pytest.mark.parametrize("link", ["file", "folder"])
def test_a_link_that_leads_outside_is_not_read(run, tmp_path, ask, link):
    outside = tmp_path / "run and more"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret" * WORTH_MAPPING)
    run.write("events/x", b"")
    if link == "file":
        (tmp_path / "run/events/secret").symlink_to(outside / "secret")
        key = "events/secret"
    else:
        (tmp_path / "run/away").symlink_to(outside)
        key = "away/secret"
    with pytest.raises(StorageError, match=r"leads outside the run.*Copy the files"):
        getattr(run, ask)(key)


def test_nothing_is_written_through_a_link_that_leads_outside(run, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"precious")
    run.write("events/x", b"")
    (tmp_path / "run/away").symlink_to(outside)
    (tmp_path / "run/nowhere").symlink_to(outside / "not there")
    asks = [
        lambda key: run.write(key, b"!"),
        run.create,
        run.claim,
        run.delete,
    ]
    for ask in asks:
        with pytest.raises(StorageError, match="leads outside the run"):
            ask("away/precious")
    for key in ("away/new", "away/new/folder/file", "nowhere/file", "nowhere/folder/file"):
        with pytest.raises(StorageError, match="leads outside the run"):
            run.write(key, b"!")
    assert files_below(outside) == ["precious"]
    assert (outside / "precious").read_bytes() == b"precious"


def test_writing_under_the_name_of_a_link_replaces_the_link(run, tmp_path):
    (tmp_path / "outside").write_bytes(b"precious")
    run.write("events/x", b"")
    (tmp_path / "run/events/link").symlink_to(tmp_path / "outside")
    run.write("events/link", b"mine")
    assert run.read("events/link") == b"mine"
    (tmp_path / "run/events/other").symlink_to(tmp_path / "outside")
    run.delete("events/other")
    assert (tmp_path / "outside").read_bytes() == b"precious"


def test_listing_refuses_a_folder_outside_and_does_not_walk_in_circles(run, tmp_path):
    run.write("index/a.json", b"{}")
    (tmp_path / "run/index/again").symlink_to(tmp_path / "run/index")
    assert list(run.list("index/")) == ["index/a.json"]
    (tmp_path / "run/away").symlink_to(tmp_path)
    assert list(run.list("index/")) == ["index/a.json"]
    with pytest.raises(StorageError, match="leads outside the run"):
        list(run.list(""))


def test_a_pipe_or_a_device_is_not_read(run, tmp_path):
    run.write("events/x", b"")
    os.mkfifo(tmp_path / "run/events/pipe")
    for ask in (run.read, run.view, run.size):
        with pytest.raises(StorageError, match="neither a file nor a folder"):
            ask("events/pipe")
    assert not run.exists("events/pipe")
