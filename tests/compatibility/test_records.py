import numpy as np
import pytest

from smdebug.core.tfrecord._crc32c import crc32c
from smdebug.core.tfrecord.record_reader import RecordReader
from smdebug.core.tfrecord.record_writer import CHECKSUM_MAGIC_BYTES, RecordWriter, masked_crc32c
from smdebug.core.tfrecord.tensor_reader import TensorReader
from smdebug.exceptions import DamagedFile, SMDebugRuntimeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys
from tests.support.golden_records import GOLDEN, records_of_the_old_library
from tests.support.looking import each

# What the old library writes for the records b"abc" and b"de".
WRITTEN = (
    b"\x03\x00\x00\x00\x00\x00\x00\x00\xb0\x99I\x0eabc\xb3\xc0-\x06"
    b"\x02\x00\x00\x00\x00\x00\x00\x00x'\x0b4de\xb3\xc0-\x06"
)


def test_records_are_at_the_returned_places_after_close(tmp_path):
    path = tmp_path / "a/r.tfrecords"
    writer = RecordWriter(str(path))
    assert writer.write_record(b"abc") == [0, 19]
    assert writer.write_record(b"de") == [19, 18]
    writer.flush()
    assert not path.exists()
    writer.close()
    writer.close()
    assert path.read_bytes() == WRITTEN


def test_checksums_equal_those_of_the_old_library():
    assert CHECKSUM_MAGIC_BYTES == b"0x12345678"
    assert masked_crc32c(b"abc") == 0x21F1576E
    assert crc32c(b"abc") == 0x364B3FB7


def test_records_are_read_in_order(tmp_path):
    path = tmp_path / "r.tfrecords"
    path.write_bytes(WRITTEN)
    with RecordReader(path) as reader:
        assert reader.has_data()
        assert reader.read_record() == b"abc"
        assert reader.read_record(check=True) == b"de"
        assert not reader.has_data()


def test_true_footers_pass_every_check_and_constant_ones_all_but_full(tmp_path):
    path = str(tmp_path / "r")
    with RecordWriter(path, write_checksum=True) as writer:
        writer.write_record(b"abc")
    for check in ("minimal", "full", None):
        assert RecordReader(path).read_record(check=check) == b"abc"
    with pytest.raises(SMDebugRuntimeError, match="checksum"):
        TensorReader(WRITTEN).read_record(check="full")


def test_a_missing_file_is_a_value_error(tmp_path):
    with pytest.raises(SMDebugValueError, match=r"failed to open .*none"):
        RecordReader(tmp_path / "none")


def test_a_damaged_header_is_a_runtime_error():
    with pytest.raises(SMDebugRuntimeError):
        TensorReader(b"\x04" + WRITTEN[1:]).read_record()


def test_tensors_have_mode_and_mode_step():
    old = records_of_the_old_library()[:3]
    reader = TensorReader(b"".join(record.record for record in old))
    for record, (name, step, value, mode, mode_step) in each(
        zip(old, reader.read_tensors(), strict=True), at_least=3
    ):
        assert (name, step, mode, mode_step) == (
            record.name,
            *(record.moment[key] for key in ("step", "mode", "mode_step")),
        )
        assert value.tobytes() == record.array.tobytes()


def test_events_and_summaries_are_messages():
    (path,) = (GOLDEN / "runs/single_worker/tensorboard/GLOBAL").iterdir()
    events = list(TensorReader(path.read_bytes()).read_events())
    assert {event.step for event in events} == {12}
    summaries = list(TensorReader(path.read_bytes()).read_summaries("full"))
    assert [summary for _, summary in summaries] == [event.summary for event in events]


def test_a_record_that_is_not_an_event_is_damaged(tmp_path):
    reader = TensorReader(WRITTEN, "some.tfevents")
    with pytest.raises(DamagedFile, match=r"some\.tfevents.*byte 0"):
        list(reader.read_events())


def test_a_tensor_without_a_mode_is_global_at_its_step():
    from smdebug.core.tfevent.util import make_tensor_proto
    from smdebug.files.framing import frame
    from smdebug.files.proto.event_pb2 import Event

    event = Event(step=4)
    event.summary.value.add(tag="t").tensor.CopyFrom(make_tensor_proto(np.arange(3.0), "t"))
    record = b"".join(frame(event.SerializeToString(), "constant").pieces)
    ((name, step, _, mode, mode_step),) = TensorReader(record).read_tensors()
    assert (name, step, mode, mode_step) == ("t", 4, ModeKeys.GLOBAL, 4)
