import pytest
from google.protobuf.internal.decoder import _DecodeVarint
from hypothesis import given
from hypothesis import strategies as st

from smdebug.files.proto.tensor_shape_pb2 import TensorShapeProto
from smdebug.files.wire import (
    DELIMITED,
    VARINT,
    Malformed,
    delimited,
    fields,
    signed,
    text,
    varint,
)

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.integers(0, 2**64 - 1))
def test_varints_are_protobufs(number):
    assert _DecodeVarint(varint(number), 0) == (number, len(varint(number)))


@given(INT64)
def test_signed_numbers_come_back(number):
    ((_, kind, value, _),) = fields(b"\x08" + varint(number), 0, 1 + len(varint(number)))
    assert kind == VARINT
    assert signed(value) == number


@given(st.lists(st.tuples(INT64, st.text())))
def test_fields_are_what_protobuf_wrote(dimensions):
    dims = [TensorShapeProto.Dim(size=size, name=name) for size, name in dimensions]
    message = TensorShapeProto(dim=dims, unknown_rank=True).SerializeToString()
    found = [(number, kind) for number, kind, _, _ in fields(message, 0, len(message))]
    assert found == [(2, DELIMITED)] * len(dims) + [(3, VARINT)]
    assert (
        message
        == b"".join(
            delimited(
                b"\x12",
                (b"\x08" + varint(size) if size else b"")
                + (delimited(b"\x12", name.encode()) if name else b""),
            )
            for size, name in dimensions
        )
        + b"\x18\x01"
    )


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"\x08", id="a number is missing"),
        pytest.param(b"\x08\x80", id="a number is cut off"),
        pytest.param(b"\x08" + b"\x80" * 10 + b"\x01", id="a number has eleven bytes"),
        pytest.param(b"\x08" + b"\xff" * 9 + b"\x02", id="a number has 65 bits"),
        pytest.param(b"\x12\x02a", id="text reaches past the end"),
        pytest.param(b"\x12" + varint(2**64 - 1) + b"a", id="text of 2^64 bytes"),
        pytest.param(b"\x09abcdefg", id="seven bytes of eight"),
        pytest.param(b"\x0dabc", id="three bytes of four"),
        pytest.param(b"\x0b\x0c", id="a group"),
        pytest.param(b"\x0e", id="wire type 6"),
        pytest.param(b"\x0f", id="wire type 7"),
        pytest.param(b"\x00\x01", id="field 0"),
    ],
)
def test_what_is_not_a_message_is_malformed(message):
    with pytest.raises(Malformed):
        list(fields(message, 0, len(message)))


def test_a_message_ends_where_it_is_declared_to_end():
    with pytest.raises(Malformed):
        list(fields(b"\x12\x02ab", 0, 3))


def test_text_has_to_be_utf8():
    assert text(b"xb\xc3\xa9x", 1, 4) == "bé"
    with pytest.raises(Malformed, match="UTF-8"):
        text(b"\xc3", 0, 1)
