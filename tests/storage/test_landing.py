from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from smdebug.storage import landing as landing_module
from smdebug.storage.landing import Landing


@pytest.fixture(params=[100, 10_000], ids=["in memory", "in a file"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(landing_module, "SPOOLED_FROM", 1000)
    return int(request.param)


def landed(data: bytes) -> memoryview:
    with Landing(len(data)) as landing:
        landing.room[:] = data
        return landing.whole()


def open_files() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def test_what_has_landed_is_what_was_sent_and_may_be_changed(size):
    data = os.urandom(size)
    whole = landed(data)
    assert whole == data
    whole[3] = whole[3] ^ 1
    assert bytes(whole[4:]) == data[4:]
    assert whole[3] != data[3]


def test_what_is_changed_is_not_seen_by_a_process_forked_later(size):
    assert " rw-p " in mapping_of(landed(bytes(size)))  # p: private, where s would be shared


def test_nothing_is_left_behind(size, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = open_files()
    whole = landed(bytes(size))
    assert list(tmp_path.iterdir()) == []
    del whole
    assert open_files() == before


def test_a_landing_that_is_broken_off_leaves_nothing(size):
    before = open_files()
    with pytest.raises(ZeroDivisionError), Landing(size):
        raise ZeroDivisionError
    assert open_files() == before


def test_a_large_object_takes_no_memory_of_the_process(monkeypatch):
    monkeypatch.setattr(landing_module, "SPOOLED_FROM", 1000)
    mapping = mapping_of(landed(bytes(32 << 20)))
    assert "(deleted)" in mapping  # a file without a name
    assert "32768 kB" in mapping


def test_where_no_file_can_be_had_memory_takes_it(size, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert landed(b"x" * size) == b"x" * size


def mapping_of(view: memoryview) -> str:
    """The system's description of the memory that holds it."""
    at = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    lines = Path("/proc/self/smaps").read_text().splitlines()
    for number, line in enumerate(lines):
        first, _, rest = line.partition("-")
        if rest and " " not in first and int(first, 16) <= at < int(rest.split()[0], 16):
            return "\n".join([line, *lines[number + 1 : number + 5]])
    raise AssertionError("it is in no memory at all")
