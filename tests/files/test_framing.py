import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.files.checksum import CONSTANT_FOOTER, crc32c
from smdebug.files.framing import check_footer, footer, frame, header, payload_end
from smdebug.files.wire import Malformed
from tests.support.looking import each


def test_a_frame_is_length_checksum_payload_and_footer():
    record = frame(b"payload", "constant")
    assert b"".join(record.pieces) == header(7) + b"payload" + CONSTANT_FOOTER
    assert record.length == 7 + 16
    assert record.crc32c == crc32c(b"payload")
    assert payload_end(b"".join(record.pieces)) == 19


def test_the_header_is_the_old_librarys():
    assert header(132) == bytes.fromhex("8400000000000000411d8aef")


def test_tensorboards_reader_accepts_a_tfrecord_footer(tmp_path):
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

    payloads = [b"", b"one", bytes(range(256)) * 300]
    path = tmp_path / "records"
    path.write_bytes(b"".join(p for x in payloads for p in frame(x, "tfrecord").pieces))
    reader = PyRecordReader_New(str(path))
    for payload in payloads:
        reader.GetNext()
        assert reader.record() == payload


def test_only_two_footers_exist():
    with pytest.raises(SMDebugValueError, match=r"constant.*tfrecord.*none"):
        footer(1, "none")
    for good in ("constant", "tfrecord"):
        check_footer(footer(99, good), 0, 99)
    with pytest.raises(Malformed, match="footer"):
        check_footer(footer(98, "tfrecord"), 0, 99)


def test_a_record_has_to_be_all_there():
    record = b"".join(frame(b"payload", "constant").pieces)
    for end in each(range(len(record)), at_least=20):
        with pytest.raises(Malformed):
            payload_end(record[:end])


def test_a_length_that_does_not_match_its_checksum_is_not_believed():
    record = bytearray(b"".join(frame(b"payload", "constant").pieces))
    record[0] = 6
    with pytest.raises(Malformed, match="does not match its checksum"):
        payload_end(record)
    assert payload_end(record, trust_header=True) == 18
