from __future__ import annotations

import json

import numpy as np
import pytest

from smdebug.core.reader import FileReader
from smdebug.core.writer import FileWriter
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugRuntimeError, SMDebugValueError
from smdebug.files.event_reading import record_spans
from smdebug.files.framing import frame
from smdebug.files.wire import delimited
from smdebug.mode_keys import ModeKeys
from tests.support.trees import files_below

EVENTS = "events/000000000003/000000000003_worker_0.tfevents"
INDEX = "index/000000000/000000000003_worker_0.json"


def test_close_writes_a_step_under_the_old_file_names(tmp_path):
    writer = FileWriter(str(tmp_path), "worker_0", step=3)
    writer.write_tensor(np.arange(3.0), "x")
    writer.flush()
    assert files_below(tmp_path) == []
    writer.write_shape("y", (1, 2))
    writer.close()
    writer.close()
    assert files_below(tmp_path) == [EVENTS, INDEX]
    index = json.loads((tmp_path / INDEX).read_bytes())
    assert index["meta"] == {"mode": "GLOBAL", "mode_step": 3, "event_file_name": EVENTS}
    (entry,) = index["tensor_payload"]
    assert (entry["tensorname"], entry["start_idx"], entry["length"]) == ("x", 0, 104)
    assert index["shape_payload"] == [{"tensorname": "y", "originalname": "y", "shape": [1, 2]}]


def test_the_first_tensor_decides_the_mode_of_the_step(tmp_path):
    with FileWriter(str(tmp_path), "worker_0", step=3, write_checksum=True) as writer:
        writer.write_tensor(5, "five", mode=ModeKeys.TRAIN, mode_step=9)
        writer.write_tensor("word", "s")
        writer.write_tensor(tdata=np.float32(3), tname="t", timestamp=12.0)
    index = json.loads((tmp_path / INDEX).read_bytes())
    assert (index["meta"]["mode"], index["meta"]["mode_step"]) == ("TRAIN", 9)
    read = list(FileReader(str(tmp_path / EVENTS)).read_tensors(check="full"))
    assert [(name, step, value.tolist(), mode, mode_step) for name, step, value, mode, mode_step in read] == [
        ("five", 3, [5], ModeKeys.TRAIN, 9),
        ("s", 3, ["word"], ModeKeys.GLOBAL, 3),
        ("t", 3, [3.0], ModeKeys.GLOBAL, 3),
    ]


def test_a_writer_has_no_name_before_its_file(tmp_path):
    writer = FileWriter(str(tmp_path), "worker_0", step=3)
    with pytest.raises(SMDebugRuntimeError, match="no file yet"):
        writer.name()
    writer.write_tensor(1, "x")
    assert writer.name() == str(tmp_path / EVENTS)


def test_a_tensor_can_be_left_out_of_the_index(tmp_path):
    with FileWriter(str(tmp_path), "worker_0", step=3) as writer:
        writer.write_tensor(1, "x", write_index=False)
    assert files_below(tmp_path) == [EVENTS]


def test_a_writer_without_data_leaves_no_file(tmp_path):
    with FileWriter(str(tmp_path / "run"), "worker_0"):
        pass
    assert files_below(tmp_path) == []


def test_summaries_are_written_to_the_tensorboard_file_of_their_mode(tmp_path):
    with FileWriter(str(tmp_path), "worker_7", step=3, wtype="tensorboard", mode=ModeKeys.TRAIN) as writer:
        writer.write_scalar_summary("a scalar", 1.5, 3, timestamp=100.0)
        writer.write_histogram_summary(np.arange(10.0), "h", 3)
        writer.write_summary(b"", 3)
        writer.write_graph(b"")
        with pytest.raises(SMDebugRuntimeError, match='wtype="events"'):
            writer.write_tensor(1, "x")
        assert writer.name() == str(tmp_path / "TRAIN/000000000003_worker_7.tfevents")
    (file,) = files_below(tmp_path)
    data = (tmp_path / file).read_bytes()
    assert len(list(record_spans(data, file=file, check="full"))) == 4
    assert b"a_scalar" in data


def test_summaries_and_tensors_can_share_a_file(tmp_path):
    with FileWriter(str(tmp_path), "worker_0", step=3) as writer:
        writer.write_scalar_summary("s", 1.5, 3)
        writer.write_tensor(1, "x")
    index = json.loads((tmp_path / INDEX).read_bytes())
    (entry,) = index["tensor_payload"]
    assert entry["start_idx"] + entry["length"] == (tmp_path / EVENTS).stat().st_size


def test_a_closed_writer_refuses_data(tmp_path):
    for wtype in ("events", "tensorboard"):
        writer = FileWriter(str(tmp_path), "worker_0", wtype=wtype)
        writer.close()
        with pytest.raises(SMDebugRuntimeError, match="closed"):
            writer.write_scalar_summary("s", 1.5, 3)


def test_other_types_of_files_are_refused(tmp_path):
    with pytest.raises(SMDebugValueError, match="wtype"):
        FileWriter(str(tmp_path), "worker_0", wtype="other")
    with pytest.raises(SMDebugValueError, match=r"modes\.TRAIN"):
        FileWriter(str(tmp_path), "worker_0", mode="TRAIN")
    with pytest.raises(SMDebugValueError, match=r"modes\.TRAIN"):
        FileWriter(str(tmp_path), "worker_0").write_tensor(1, "x", mode="TRAIN")
    with pytest.raises(SMDebugNotImplementedError, match="tfevent"):
        FileReader("x", wtype="other")


def test_events_are_dictionaries_selected_by_name(tmp_path, monkeypatch):
    with FileWriter(str(tmp_path), "worker_0", step=3) as writer:
        writer.write_tensor(1, "one", timestamp=5.0)
        writer.write_tensor(2, "two")
    monkeypatch.chdir((tmp_path / EVENTS).parent)
    with FileReader("000000000003_worker_0.tfevents") as reader:
        assert [event["name"] for event in reader.read_events()] == ["one", "two"]
        (event,) = reader.read_events(check=True, regex_list=["^o"])
    assert (event["timestamp"], event["step"], event["value"].tolist()) == (5.0, 3, [1])


@pytest.mark.parametrize("check", ["minimal", "full", True])
def test_damage_is_a_runtime_error(tmp_path, check):
    with FileWriter(str(tmp_path), "worker_0", step=3) as writer:
        writer.write_tensor(1, "x")
    data = bytearray((tmp_path / EVENTS).read_bytes())
    data[-1] ^= 1
    (tmp_path / EVENTS).write_bytes(data)
    reader = FileReader(tmp_path / EVENTS)
    with pytest.raises(SMDebugRuntimeError):
        list(reader.read_tensors(check=check))
    assert [name for name, *_ in reader.read_tensors(check=None)] == ["x"]


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ([], (ModeKeys.GLOBAL, 7)),
        ([(b"mode", b"1")], (ModeKeys.TRAIN, 7)),
        ([(b"mode_step", b"3")], (ModeKeys.GLOBAL, 3)),
    ],
)
def test_a_record_without_a_mode_belongs_to_the_global_step(tmp_path, plugins, expected):
    tensor = b"\x08\x01" + delimited(b"\x12", b"") + delimited(b"\x22", bytes(4))
    metadata = b"".join(
        delimited(b"\x0a", delimited(b"\x0a", name) + delimited(b"\x12", content))
        for name, content in plugins
    )
    value = delimited(b"\x0a", b"x") + delimited(b"\x42", tensor) + delimited(b"\x4a", metadata)
    event = b"\x10\x07" + delimited(b"\x2a", delimited(b"\x0a", value))
    (tmp_path / "e.tfevents").write_bytes(b"".join(frame(event, "constant").pieces))
    ((name, step, _, mode, mode_step),) = FileReader(tmp_path / "e.tfevents").read_tensors()
    assert (name, step, mode, mode_step) == ("x", 7, *expected)
