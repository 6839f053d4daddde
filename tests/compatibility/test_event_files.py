import json
from types import SimpleNamespace

import numpy as np
import pytest

from smdebug.core.locations import TensorLocation, TensorShape
from smdebug.core.tfevent.event_file_reader import EventFileReader, EventsReader, get_tensor_data
from smdebug.core.tfevent.event_file_writer import EventFileWriter
from smdebug.core.tfevent.events_writer import EventsWriter
from smdebug.core.tfevent.index_file_writer import EventWithIndex, Index, IndexWriter
from smdebug.core.tfevent.proto import (
    attr_value_pb2,
    event_pb2,
    graph_pb2,
    node_def_pb2,
    resource_handle_pb2,
    summary_pb2,
    tensor_pb2,
    tensor_shape_pb2,
    types_pb2,
    versions_pb2,
)
from smdebug.core.tfevent.summary import _get_default_bins, histogram_summary, scalar_summary
from smdebug.core.tfevent.timeline_file_writer import TimelineFileWriter, TimelineRecord
from smdebug.core.tfevent.util import _get_proto_dtype, make_tensor_proto
from smdebug.exceptions import (
    DamagedFile,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.files.checksum import crc32c
from smdebug.files.index import parse_index
from smdebug.mode_keys import ModeKeys

EVENTS = "run/events/000000000003/000000000003_worker_0.tfevents"
INDEX = "run/index/000000000/000000000003_worker_0.json"


def summary_of(array, tag="t"):
    value = summary_pb2.Summary.Value(tag=tag, tensor=make_tensor_proto(array, tag))
    return summary_pb2.Summary(value=[value])


def test_a_summary_is_written_in_the_old_form_and_indexed(tmp_path):
    index_writer = IndexWriter(str(tmp_path / INDEX))
    writer = EventFileWriter(str(tmp_path / EVENTS), index_writer=index_writer)
    summary = summary_of(np.arange(3.0))
    writer.write_summary_with_index(summary, 3, "t", ModeKeys.TRAIN, 2, timestamp=5.0)
    writer.write_summary(summary, 4, timestamp=6.0)
    writer.flush()
    assert writer.name() == str(tmp_path / EVENTS)
    assert not (tmp_path / "run").exists() or not (tmp_path / EVENTS).exists()
    writer.close()
    writer.close()

    data = (tmp_path / EVENTS).read_bytes()
    assert data[:75] == (  # the old library's
        b";\x00\x00\x00\x00\x00\x00\x00\x1a#\xac\\\t\x00\x00\x00\x00\x00\x00\x14@\x10\x03*.\n,\n\x01tB'"
        b'\x08\x02\x12\t\x12\x07\x08\x03\x12\x03t_3"\x18' + np.arange(3.0).tobytes() + b"\xb3\xc0-\x06"
    )
    index = parse_index((tmp_path / INDEX).read_bytes(), file=INDEX)
    assert index.meta == (ModeKeys.TRAIN, 2, EVENTS.removeprefix("run/"), {})
    assert (index.names, index.starts, index.lengths) == (("t",), (0,), (75,))
    assert index.crcs == (crc32c(data[12:71]),)


def test_event_files_are_read_as_tensors_summaries_or_events(tmp_path):
    path = str(tmp_path / "000000000003_worker_0.tfevents")
    with EventFileWriter(path) as writer:
        writer.write_summary(summary_of(np.arange(2)), 3, timestamp=5.0)
    ((name, step, value, mode, mode_step),) = EventFileReader(path).read_tensors()
    assert (name, step, mode, mode_step) == ("t", 3, ModeKeys.GLOBAL, 3)
    assert value.tolist() == [0, 1]
    ((step, summary),) = EventFileReader(path).read_summaries()
    assert summary.value[0].tag == "t"
    with EventsReader(path) as reader:
        ((event),) = reader.read_events()
    assert (event.step, event.wall_time) == (3, 5.0)
    with EventFileReader(path) as reader, pytest.raises(SMDebugRuntimeError):
        list(reader.read_events(check="full"))


def test_a_graph_is_written(tmp_path):
    path = str(tmp_path / "graph.tfevents")
    graph = graph_pb2.GraphDef(node=[node_def_pb2.NodeDef(name="x", op="Placeholder")])
    with EventFileWriter(path, write_checksum=True) as writer:
        writer.write_graph(graph)
    ((event),) = EventFileReader(path).read_events(check="full")
    assert graph_pb2.GraphDef.FromString(event.graph_def) == graph


def test_an_events_writer_takes_messages_only(tmp_path):
    writer = EventsWriter(tmp_path / "e.tfevents")
    writer.init()
    assert writer.write_event(event_pb2.Event(step=1, summary=summary_of(np.arange(3.0)))) == [
        0,
        66,
    ]
    for wrong in ("x", EventWithIndex(event_pb2.Event(), "t", ModeKeys.EVAL, 4)):
        with pytest.raises(SMDebugTypeError, match="Event proto"):
            writer.write_event(wrong)
    writer.close()
    assert (tmp_path / "e.tfevents").stat().st_size == 66


def test_an_index_writer_writes_its_entries(tmp_path):
    path = tmp_path / "i.json"
    with IndexWriter(str(path)) as writer:
        writer.add_shape(TensorShape("b", ModeKeys.TRAIN, 3, (2,), "c"))
        writer.add_index(TensorLocation("a", ModeKeys.TRAIN, 3, "events/x", 0, 99, "worker_0"))
        writer.flush()
        assert not path.exists()
    assert path.read_bytes() == (
        b'{"meta": {"mode": "TRAIN", "mode_step": 3, "event_file_name": "events/x"}, '
        b'"tensor_payload": [{"tensorname": "a", "start_idx": 0, "length": 99}], '
        b'"shape_payload": [{"tensorname": "b", "originalname": "c", "shape": [2]}]}'
    )


def test_an_index_without_entries_is_not_written(tmp_path):
    IndexWriter(str(tmp_path / "i.json")).close()
    assert not list(tmp_path.iterdir())


def test_an_index_converts_to_json():
    index = Index(meta={"mode": "TRAIN"}, tensor_payload=[])
    assert json.loads(index.to_json()) == {
        "meta": {"mode": "TRAIN"},
        "tensor_payload": [],
        "shape_payload": None,
    }
    assert EventWithIndex(None, "t", ModeKeys.EVAL, 4).get_mode() == "EVAL"


@pytest.mark.parametrize(
    ("array", "message"),  # the old library's
    [
        (np.array(["a", "bé", ""]), "120b1209080312057461675f33420161420362c3a94200"),
        (np.array(["a", "b"], object), "120b1209080212057461675f32420161420162"),
        (np.array([], np.float32), "08011209120712057461675f30"),
        (np.array(3.5), "0802120022080000000000000c40"),
        (np.array([1, -2], np.int8), "0806120b1209080212057461675f32220201fe"),
        (np.array([1], np.float16), "0813120b1209080112057461675f312202003c"),
    ],
)
def test_tensor_messages_equal_those_of_the_old_library_and_round_trip(array, message):
    tensor = make_tensor_proto(array, "tag")
    assert tensor.SerializeToString().hex() == message
    back = get_tensor_data(tensor)
    assert back.tolist() == array.tolist()
    assert back.shape == array.shape


def test_a_tensor_message_of_another_size_is_refused():
    with pytest.raises(DamagedFile):
        get_tensor_data(tensor_pb2.TensorProto(dtype=1, tensor_content=b"abc"))


def test_dtypes_have_the_names_of_tensorflow():
    assert _get_proto_dtype(np.dtype("float32")) == (True, "DT_FLOAT")
    assert _get_proto_dtype(np.dtype("U3")) == (False, "DT_STRING")
    with pytest.raises(SMDebugTypeError):
        _get_proto_dtype(np.dtype("datetime64[s]"))


def test_every_message_module_is_at_its_old_address():
    assert attr_value_pb2.AttrValue(i=1).i == 1
    assert resource_handle_pb2.ResourceHandleProto().name == ""
    assert tensor_shape_pb2.TensorShapeProto().dim == []
    assert types_pb2.DT_FLOAT == 1
    assert types_pb2.DataType.Name(7) == "DT_STRING"
    assert versions_pb2.VersionDef(producer=1).producer == 1


@pytest.mark.parametrize("scalar", [1.5, np.float32(1.5), np.array([1.5]), np.array(1.5), [1.5]])
def test_a_scalar_summary_has_one_value(scalar):
    (value,) = scalar_summary("a:b", scalar).value
    assert (value.tag, value.simple_value) == ("a_b", 1.5)


def test_a_scalar_summary_of_two_values_is_refused():
    with pytest.raises(SMDebugRuntimeError, match="scalar should be 0D"):
        scalar_summary("a", np.zeros(2))


def test_histograms_have_the_requested_bins():
    (value,) = histogram_summary("w/x:0", np.arange(3.0), [0, 1, 5]).value
    assert value.tag == "w/x_0"
    assert list(value.histo.bucket_limit) == [0, 1, 5]
    assert list(value.histo.bucket) == [0, 1, 2]
    for bins in (_get_default_bins(), "default", None):
        assert histogram_summary("w", np.arange(3.0), bins).value[0].histo.num == 3


def test_bins_are_joined_until_there_are_few_enough():
    histogram = histogram_summary("w", np.arange(100.0), list(range(100)), max_bins=7).value[0].histo
    assert len(histogram.bucket) <= 8
    assert sum(histogram.bucket) == 100


def test_an_empty_array_has_no_histogram():
    with pytest.raises(SMDebugValueError, match="no element"):
        histogram_summary("w", [])


def test_trace_events_have_the_form_of_chrome(tmp_path):
    parser = SimpleNamespace(config=SimpleNamespace(local_path=str(tmp_path)))
    writer = TimelineFileWriter(parser)
    writer.write_trace_events(timestamp=1.7e9, training_phase="train", op_name="a", duration=0.5, step=3)
    writer.write_trace_events(timestamp=1.7e9 + 1, training_phase="train", op_name="b", phase="B")
    writer.flush()
    writer.close()
    writer.close()
    (path,) = tmp_path.glob("framework/pevents/*/*_pythontimeline.json")
    assert path.name.startswith("1700000001000000_")
    start, _, process, _, first, second = json.loads(path.read_text())
    base = start["args"]["start_time_since_epoch_in_micros"]
    assert process["args"] == {"name": "train"}
    assert first == {
        "name": "a",
        "pid": 0,
        "ph": "X",
        "ts": 1_700_000_000_000_000 - base,
        "dur": 500_000,
        "args": {"step": 3},
    }
    assert "dur" not in second


def test_a_trace_event_is_relative_to_the_start():
    record = TimelineRecord(1.5, 1_000_000, "phase", "i", "op")
    assert json.loads(record.to_json()) == {"name": "op", "pid": 0, "ph": "i", "ts": 500_000}


def test_without_a_profiler_nothing_is_traced(tmp_path):
    writer = TimelineFileWriter(SimpleNamespace(config=None))
    writer.write_trace_events(timestamp=1.0, op_name="a")
    writer.close()
    assert not list(tmp_path.iterdir())
