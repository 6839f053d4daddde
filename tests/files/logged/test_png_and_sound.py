"""Images and sound, as files: what is written is read again, and nothing else is taken for one."""

from __future__ import annotations

import contextlib
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from smdebug.exceptions import DamagedFile
from smdebug.files.logged.contents import checked_value
from smdebug.files.logged.png import decode_png, encode_png
from smdebug.files.logged.sound import decode_wav, encode_wav

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))


@given(SHAPES.flatmap(lambda shape: arrays(np.uint8, shape)))
def test_an_image_has_the_pixels_that_were_written(pixels):
    assert (decode_png(encode_png(pixels), "image") == pixels).all()


@given(arrays(np.int16, st.tuples(st.integers(1, 20), st.integers(1, 2))), st.integers(1, 200_000))
def test_sound_has_the_samples_that_were_written(samples, rate):
    read, read_rate = decode_wav(encode_wav(samples, rate), "sound")
    assert (read == samples).all()
    assert read_rate == rate


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_byte_is_an_error_or_has_no_effect(place, byte):
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    data = bytearray(encode_png(pixels))
    data[place % len(data)] = byte
    with contextlib.suppress(DamagedFile):
        assert (decode_png(bytes(data), "image") == pixels).all()


def test_an_image_that_unpacks_to_more_than_it_says_is_refused():
    data = encode_png(np.zeros((2, 2, 1), np.uint8))
    packed = zlib.compress(bytes(50 << 20))
    bomb = struct.pack(">I", len(packed)) + b"IDAT" + packed
    bomb += struct.pack(">I", zlib.crc32(b"IDAT" + packed))
    with pytest.raises(DamagedFile, match="another number of pixels"):
        decode_png(data[:33] + bomb + data[-12:], "image")


@pytest.mark.parametrize("data", [b"", b"RIFF", b"\x89PNG\r\n\x1a\n", b"<svg onload=alert(1)>" * 9])
def test_what_is_no_image_or_sound_is_damaged(data):
    for decode in (decode_png, decode_wav):
        with pytest.raises(DamagedFile):
            decode(data, "file")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text", b'{"text": 3}'),
        ("table", b'{"columns": ["a"], "rows": [[1, 2]]}'),
        ("table", b'{"columns": ["a"], "rows": [[{"b": 1}]]}'),
        ("table", b'{"columns": [1], "rows": []}'),
        ("confusion_matrix", b'{"classes": ["a", "b"], "counts": [[1, 2]]}'),
        ("confusion_matrix", b'{"classes": ["a"], "counts": [[-1]]}'),
        ("histogram", b'{"counts": [1], "edges": [0]}'),
        ("histogram", b'{"counts": [1], "edges": [0, NaN]}'),
        ("histogram", b'{"counts": ["1"], "edges": [0, 1]}'),
    ],
)
def test_json_of_another_form_is_damaged(kind, content):
    with pytest.raises(DamagedFile):
        checked_value(kind, content, "value")
