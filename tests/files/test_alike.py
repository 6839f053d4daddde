from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smdebug.exceptions import IndexReaderException
from smdebug.files import alike
from smdebug.files.alike import AlikeIndexFiles
from smdebug.files.index import IndexMeta, ShapeRecord, TensorEntry, encode_index, parse_index
from smdebug.mode_keys import ModeKeys

TRICKY = ["loss", 'a", "crc32c": 7', ', "tensor_payload": [', "ü", "crc32c"]


def index_file(step: int, crcs: list[int | None], names: list[str], shape: int | None = None) -> bytes:
    entries = [
        TensorEntry(name, 100 * at, 100, crc) for at, (name, crc) in enumerate(zip(names, crcs, strict=True))
    ]
    shapes = [] if shape is None else [ShapeRecord("s", "s", (shape,))]
    return encode_index(IndexMeta(ModeKeys.TRAIN, step, f"events/{step}"), entries, shapes)


def answer(parse: Any, data: bytes) -> Any:
    try:
        return parse(data, file="index/000000000/000000000007_worker_0.json")
    except IndexReaderException as error:
        return str(error)


crc = st.integers(0, (1 << 32) - 1)
files = st.builds(
    lambda step, names, crcs, with_crcs, shape: index_file(
        step, crcs[: len(names)] if with_crcs else [None] * len(names), names, shape
    ),
    st.integers(0, 5),
    st.lists(st.sampled_from(TRICKY), min_size=1, max_size=3),
    st.lists(crc, min_size=3, max_size=3),
    st.booleans(),
    st.sampled_from([None, 1, 2]),
)


@given(st.lists(files, max_size=12))
def test_a_memory_does_not_change_what_a_file_says(some):
    parse = AlikeIndexFiles().parse
    for data in some:
        assert answer(parse, data) == answer(parse_index, data)


@settings(max_examples=300)
@given(files, st.data())
def test_nor_what_is_wrong_with_it(data, draw):
    parse = AlikeIndexFiles().parse
    parse(data, file="index/000000000/000000000007_worker_0.json")
    at = draw.draw(st.integers(0, len(data) - 1))
    put = draw.draw(
        st.sampled_from([b"", b"0", b"9", b"-", b".5", b"e9", b"}", b'"', b"]", b',"meta":{}', b"\xff"])
    )
    upto = at + draw.draw(st.integers(0, 3))
    changed = data[:at] + put + data[upto:]
    assert answer(parse, changed) == answer(parse_index, changed)


@pytest.mark.parametrize(
    "changed",
    [
        lambda data: data.replace(b'"crc32c": 1}', b'"crc32c": 01}'),
        lambda data: data.replace(b'"crc32c": 1}', b'"crc32c": 4294967296}'),
        lambda data: data.replace(b'"crc32c": 1}', b'"crc32c": 12345678901}'),
        lambda data: data.replace(b'"crc32c": 1}', b'"crc32c": 1.0}'),
        lambda data: data.replace(b'"events/1"', b'"../1"'),
        lambda data: data.replace(b'"events/1"', b'""'),
        lambda data: data.replace(b'"events/1"', b"null"),
        lambda data: data.replace(b'"mode_step"', b'"file_crc32c": 7, "mode_step"'),
        lambda data: data.replace(b'"meta"', b'"shape_payload": [], "meta"'),
        lambda data: data.replace(b'{"meta"', b'{"tensor_payload": [], "meta"'),
        lambda data: data.replace(b', "tensor_payload"', b'}, "tensor_payload"'),
        lambda data: data.replace(b"]}", b'], "meta": {}}'),
        lambda data: data[:-1],
    ],
)
def test_a_file_that_only_looks_alike_is_looked_at_closely(changed):
    parse = AlikeIndexFiles().parse
    data = index_file(1, [1, 2], ["loss", "w"])
    parse(data, file="x")
    assert changed(data) != data
    assert answer(parse, changed(data)) == answer(parse_index, changed(data))


def test_checksums_of_a_list_that_does_not_count_are_nobodys():
    tensors = b'[{"tensorname": "a", "start_idx": 0, "length": 20}, '
    tensors += b'{"tensorname": "b", "start_idx": 20, "length": 20, "crc32c": 7}]'
    twice = b', "tensor_payload": ' + tensors
    meta = b'{"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "events/1"}'
    data = meta + twice + twice + b"}"  # of a key that comes twice, the last counts
    parse = AlikeIndexFiles().parse
    for _ in range(2):
        assert parse(data, file="x").crcs == (None, 7)


def test_the_same_tail_is_parsed_once(monkeypatch):
    parsed = []

    def counted(data: bytes, *, file: str) -> Any:
        parsed.append(len(data))
        return parse_index(data, file=file)

    monkeypatch.setattr(alike, "parse_index", counted)
    parse = AlikeIndexFiles().parse
    names = [f"layer_{number}" for number in range(40)]
    for step in range(5):
        data = index_file(step, [step] * 40, names)
        assert parse(data, file="x").crcs == (step,) * 40
    assert sum(length > 1000 for length in parsed) == 2  # the first, and to see that its tail stands alone


def test_a_run_whose_files_are_never_alike_is_not_compared_forever():
    parser = AlikeIndexFiles()
    for step in range(60):
        parser.parse(index_file(step, [1], [f"name_{step}"]), file="x")
    assert parser._in_vain > 32
    assert len(parser._tails) <= 8
