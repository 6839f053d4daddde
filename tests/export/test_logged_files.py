"""What was logged, as files that other tools keep."""

from __future__ import annotations

import io

import numpy as np

import smdebug
from smdebug.export.logged_files import logged_files
from smdebug.export.sending import send_run
from smdebug.sinks.records import FileRecord, as_line, from_line
from smdebug.trials import create_trial


class Kept:
    """A sink that keeps what it gets."""

    place, run_id = "here", None

    def __init__(self):
        self.records = []

    def begin(self, run):
        pass

    def send(self, records):
        self.records += records

    def end(self, *, is_complete=True):
        pass


def test_each_value_is_a_file_with_a_plain_name(tmp_path):
    place = str(tmp_path / "run")
    with smdebug.Hook(place) as hook:
        with hook.step(smdebug.modes.TRAIN):
            hook.record("loss", 1.0)
        hook.log({"../up": np.zeros((2, 2), np.uint8), "größe/✓": "text\nof two lines", "rows": [{"a": 1}]})
    (tmp_path / "run/logged/values/worker_0/000002.value").write_bytes(b"{")  # the table is damaged
    files = list(logged_files(create_trial(place).logged()))
    assert [file.path for file in files] == [
        "logged/up/step-000000000000-0.png",
        "logged/gr-e/step-000000000000-1.txt",
    ]
    assert files[0].data.startswith(b"\x89PNG")
    assert files[1].data.decode() == "text\nof two lines"
    sink = Kept()
    send_run(place, sink, with_rules=False)
    assert [record for record in sink.records if isinstance(record, FileRecord)] == files


def test_a_file_passes_a_pipe_as_it_is():
    record = FileRecord("logged/a.png", bytes(range(256)))
    assert from_line(as_line(record)) == record


def test_lines_of_json_have_no_files(tmp_path):
    from smdebug.export.sending import file_sink

    sink = file_sink("jsonl", "-", io.StringIO())
    sink.send([FileRecord("logged/a.png", b"x")])
