"""A file appears once it is complete, and what is no file is never replaced by one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from smdebug.storage.whole_file import whole_file


def test_a_file_appears_as_a_whole_and_not_at_all_after_an_error(tmp_path):
    file = tmp_path / "a.txt"
    with whole_file(file) as place:
        Path(place).write_text("whole")
        assert not file.exists()
    assert file.read_text() == "whole"
    with pytest.raises(ZeroDivisionError), whole_file(file) as place:
        Path(place).write_text("half")
        raise ZeroDivisionError
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"]
    assert file.read_text() == "whole"


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    with whole_file(pipe) as place:
        Path(place).write_text("whole")
    reader.join(10)
    assert read == ["whole"]
    assert pipe.is_fifo()


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "a.txt", tmp_path / "link"
    link.symlink_to(file)
    for text in ("first", "second"):
        with whole_file(link) as place:
            Path(place).write_text(text)
        assert link.is_symlink()
        assert file.read_text() == text
