import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.exceptions import IndexReaderException, SMDebugValueError
from smdebug.files import wrong_content
from smdebug.files.index import (
    BESIDE,
    IndexFile,
    IndexMeta,
    ShapeRecord,
    TensorEntry,
    encode_index,
    parse_index,
)
from smdebug.mode_keys import ModeKeys
from tests.support.golden_records import index_files, records_of_the_old_library
from tests.support.looking import each

KEY = "index/000000000/000000000005_worker_0.json"
META = IndexMeta(ModeKeys.TRAIN, 5, "events/000000000005/000000000005_worker_0.tfevents")
PLAIN = {"mode": "TRAIN", "mode_step": 5, "event_file_name": "events/x"}
TENSOR = {"tensorname": "loss", "start_idx": 0, "length": 100}

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
SIZES = st.lists(st.integers(0, 2**63 - 1), max_size=4).map(tuple)
FITTING = st.lists(st.integers(0, 2), max_size=4).map(tuple)  # into 16 bytes
ENTRIES = st.builds(
    TensorEntry,
    NAMES,
    st.integers(0, 2**63 - 1),
    st.integers(16, 2**63 - 1),
    st.none() | st.integers(0, 2**32 - 1),
    st.none() | st.text(),
    st.none() | FITTING,
)


def parse(content):
    return parse_index(json.dumps(content).encode(), file=KEY)


def entries_of(index):
    missing = (None,) * len(index.names)
    columns = (index.crcs or missing, index.dtypes or missing, index.shapes or missing)
    rows = zip(index.names, index.starts, index.lengths, *columns, strict=True)
    return [TensorEntry(*row) for row in rows]


@pytest.mark.parametrize("path", index_files(), ids=lambda path: "/".join(path.parts[-4:]))
def test_index_files_of_the_reference_runs_are_written_again_to_the_byte(path):
    data = path.read_bytes()
    index = parse_index(data, file=str(path))
    assert encode_index(index.meta, entries_of(index), index.shape_records) == data


def test_index_files_of_the_old_library_are_written_again_to_the_byte():
    for old in each(records_of_the_old_library(), at_least=100):
        index = parse_index(old.index, file="index")
        assert encode_index(index.meta, entries_of(index)) == old.index
        assert index.names == (old.name,)
        assert index.lengths == (len(old.record),)


@given(
    st.sampled_from(ModeKeys),
    st.integers(-1, 2**63 - 1),
    st.lists(ENTRIES, max_size=5),
    st.lists(st.builds(ShapeRecord, NAMES, NAMES, SIZES), max_size=3),
    st.dictionaries(st.sampled_from(["run_id", "previous_step", "saved_at"]), st.none() | st.text()),
)
def test_what_is_written_is_read_back(mode, mode_step, tensors, shapes, extras):
    meta = IndexMeta(mode, mode_step, "events/x" if tensors else None, extras)
    if not tensors and not shapes:
        with pytest.raises(SMDebugValueError):
            encode_index(meta, tensors, shapes)
        return
    index = parse_index(encode_index(meta, tensors, shapes), file=KEY)
    assert index.meta == meta
    assert entries_of(index) == tensors
    assert list(index.shape_records) == shapes


def test_our_keys_stand_inside_meta_and_entries_behind_the_old_ones():
    meta = META._replace(extras={"run_id": "r", "previous_step": None})
    entries = [TensorEntry("ä", 0, 100, 7, "float32", (2, 3)), TensorEntry("b", 100, 50)]
    assert encode_index(meta, entries) == (
        b'{"meta": {"mode": "TRAIN", "mode_step": 5, '
        b'"event_file_name": "events/000000000005/000000000005_worker_0.tfevents", '
        b'"run_id": "r", "previous_step": null}, "tensor_payload": [{"tensorname": "\\u00e4", '
        b'"start_idx": 0, "length": 100, "crc32c": 7, "dtype": "float32", "shape": [2, 3]}, '
        b'{"tensorname": "b", "start_idx": 100, "length": 50}], "shape_payload": []}'
    )


def test_columns_that_no_entry_has_are_none_and_gaps_are_none():
    index = parse({"meta": PLAIN, "tensor_payload": [TENSOR, {**TENSOR, "crc32c": 1}]})
    assert index.crcs == (None, 1)
    assert index.dtypes is None
    assert index.shapes is None


def test_a_name_that_occurs_twice_is_kept_twice_in_order():
    index = parse({"meta": PLAIN, "tensor_payload": [TENSOR, {**TENSOR, "start_idx": 100}]})
    assert index.names == ("loss", "loss")
    assert index.starts == (0, 100)


def test_of_a_key_that_occurs_twice_the_last_counts():
    data = b'{"meta": {"mode": "EVAL", "mode": "TRAIN", "mode_step": 1}, "shape_payload": []}'
    assert parse_index(data, file=KEY).meta.mode is ModeKeys.TRAIN


def test_a_file_with_shapes_only_needs_no_event_file():
    shape = {"tensorname": "x", "originalname": "y", "shape": [2]}
    index = parse({"meta": {"mode": "GLOBAL", "mode_step": 5}, "shape_payload": [shape]})
    assert index == IndexFile(
        IndexMeta(ModeKeys.GLOBAL, 5), (), (), (), None, None, None, (ShapeRecord("x", "y", (2,)),)
    )


def test_a_shape_without_an_original_name_has_its_own():
    for original in ({}, {"originalname": None}):
        index = parse({"meta": PLAIN, "shape_payload": [{"tensorname": "x", "shape": [], **original}]})
        assert index.shape_records == (ShapeRecord("x", "x", ()),)


def test_a_mode_step_that_is_null_is_the_step_of_the_files_name():
    meta = {"mode": "GLOBAL", "mode_step": None}
    data = json.dumps({"meta": meta, "shape_payload": []}).encode()
    assert parse_index(data, file=KEY).meta.mode_step == 5
    with pytest.raises(IndexReaderException, match="mode_step"):
        parse_index(data, file="somewhere")


def test_lists_may_be_empty_and_unknown_keys_stand_anywhere():
    index = parse({"meta": {**PLAIN, "more": [1]}, "tensor_payload": [], "top": {}})
    assert index.meta.extras == {"more": [1]}
    assert index.names == ()
    assert parse({"meta": PLAIN, "tensor_payload": [{**TENSOR, "more": None}]}).crcs is None


@pytest.mark.parametrize("name", ["x", "events/a b/x", "events/..a/b..", "events/0/5__job-ps_gpu-0.tf"])
def test_plain_paths_inside_the_run_are_accepted(name):
    assert parse({"meta": {**PLAIN, "event_file_name": name}, "tensor_payload": [TENSOR]})


def test_the_error_names_the_file_the_place_and_what_to_do():
    with pytest.raises(IndexReaderException) as caught:
        parse({"meta": PLAIN, "tensor_payload": [TENSOR, {**TENSOR, "start_idx": -1}]})
    text = str(caught.value)
    assert KEY in text
    assert "tensor_payload[1].start_idx is -1" in text
    assert "Restore the file, or remove it" in text


def test_errors_are_short_however_long_the_nonsense():
    for nonsense in ("x" * 10**6, [0] * 10**5, 10**4000, "\ud800" * 10**5):
        with pytest.raises(IndexReaderException) as caught:
            parse({"meta": {**PLAIN, "mode": nonsense}, "tensor_payload": [TENSOR]})
        assert len(str(caught.value)) < 500


def test_files_beyond_the_limit_are_not_parsed(monkeypatch):
    monkeypatch.setattr(wrong_content, "LARGEST_FILE", 10)
    with pytest.raises(IndexReaderException, match="more than 10"):
        parse({"meta": PLAIN, "tensor_payload": [TENSOR]})


def test_a_file_that_says_nothing_is_not_written():
    with pytest.raises(SMDebugValueError, match="neither"):
        encode_index(META, [], [])


OBSERVED = TensorEntry("smdebug/facts", 148, 90, 7, "uint8", (40,))


def with_beside(entries):
    meta = IndexMeta(ModeKeys.TRAIN, 3, "events/000000000003/000000000003_worker_0.tfevents")
    return encode_index(meta, [TensorEntry("loss", 0, 148)], beside=entries)


def test_tensors_beside_the_others_are_found_behind_them():
    index = parse_index(with_beside([OBSERVED]), file="index/000000003_worker_0.json")

    assert entries_of(index) == [TensorEntry("loss", 0, 148), OBSERVED]
    assert index.beside == 1


def test_tensors_beside_the_others_come_under_a_key_of_their_own():
    content = json.loads(with_beside([OBSERVED]))

    assert [entry["tensorname"] for entry in content["tensor_payload"]] == ["loss"]
    assert [entry["tensorname"] for entry in content["meta"][BESIDE]] == ["smdebug/facts"]
    assert BESIDE not in json.loads(with_beside([]))["meta"]


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        (None, "observed_payload is missing or null instead of a list"),
        ({}, "observed_payload is an object instead of a list"),
        ([3], r"observed_payload\[0\] is a number instead of an object"),
        ([{"tensorname": "a", "start_idx": -1, "length": 4}], r"observed_payload\[0\].start_idx is -1"),
    ],
)
def test_an_error_in_what_is_beside_names_its_place(beside, says):
    content = json.loads(with_beside([OBSERVED]))
    content["meta"][BESIDE] = beside

    with pytest.raises(IndexReaderException, match=says):
        parse_index(json.dumps(content).encode(), file="index/000000003_worker_0.json")
