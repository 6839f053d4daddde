"""Files with arbitrary changes: read as they are now, or refused with a typed error."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from smdebug.exceptions import DamagedFile, IndexReaderException
from smdebug.files.collections_file import parse_collections
from smdebug.files.event_reading import (
    decode_event,
    iterate_records,
    read_record,
    read_value,
    record_spans,
)
from smdebug.files.index import parse_index
from tests.support.golden_records import GOLDEN, records_of_the_old_library


@given(st.binary())
def test_arbitrary_bytes_are_refused(data):
    for read in (
        lambda: decode_event(data, file="f"),
        lambda: read_record(data, file="f"),
        lambda: read_value(data, file="f", name="x", step=0),
        lambda: list(iterate_records(data, file="f")),
        lambda: list(iterate_records(data, file="f", check="none")),
        lambda: list(record_spans(data, file="f")),
    ):
        try:
            read()
        except DamagedFile:
            continue


PAYLOADS = [old.record[12:-4] for old in records_of_the_old_library() if len(old.record) < 500]


@st.composite
def mutated(draw, originals):
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 12)))
        data[start:stop] = draw(st.binary(max_size=12))
    return bytes(data)


@given(mutated(PAYLOADS))
def test_a_changed_event_is_read_as_changed_or_refused(payload):
    from google.protobuf.message import DecodeError

    from smdebug.files.proto.event_pb2 import Event

    try:
        event = decode_event(payload, file="f")
    except DamagedFile:
        return
    try:
        message = Event.FromString(payload)
    except DecodeError:  # more particular than we are about text that nobody reads
        return
    value = message.summary.value[-1]
    assert value.tag == event.name
    assert message.step == event.step
    if event.value.dtype.kind not in "UO":
        assert value.tensor.tensor_content == event.value.tobytes()


INDEX = [
    (GOLDEN / "runs/single_worker/index/000000000/000000000008_worker_0.json").read_bytes(),
    b'{"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "events/x"}, "tensor_payload": '
    b'[{"tensorname": "a", "start_idx": 0, "length": 99, "crc32c": 5, "dtype": "int8", "shape": [2]}]}',
]


@given(mutated(INDEX))
def test_a_changed_index_file_is_read_or_refused(data):
    try:
        index = parse_index(data, file="index/7_w.json")
    except IndexReaderException:
        return
    assert len(index.names) == len(index.starts) == len(index.lengths)
    assert all(type(start) is int and start >= 0 for start in index.starts)


KEYS = """meta mode mode_step event_file_name tensor_payload shape_payload tensorname start_idx length crc32c
dtype shape originalname collections _meta num_workers name include_regex"""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(JSON)
def test_json_of_any_kind_is_read_or_refused(content):
    data = json.dumps(content).encode()
    for parse, error in ((parse_index, IndexReaderException), (parse_collections, DamagedFile)):
        try:
            parse(data, file="f")
        except error:
            continue


@given(mutated([next((GOLDEN / "runs").glob("single_worker/collections/*/*")).read_bytes()[:900]]))
def test_a_changed_collections_file_is_read_or_refused(data):
    try:
        parse_collections(data, file="f")
    except DamagedFile:
        return
