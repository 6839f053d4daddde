"""The checksum of index files and collections files over their own content."""

from __future__ import annotations

import json

import pytest

import smdebug
from smdebug.exceptions import DamagedFile, IndexReaderException
from smdebug.files.alike import AlikeIndexFiles
from smdebug.files.collections_file import encode_collections, parse_collections
from smdebug.files.file_checksum import ChangedFile, without_checksum
from smdebug.files.index import IndexMeta, ShapeRecord, TensorEntry, encode_index, parse_index
from smdebug.mode_keys import ModeKeys
from tests.support.looking import each

META = IndexMeta(ModeKeys.TRAIN, 7, "events/e", {"run_id": "3f0c9a", "training_run": 0})
ENTRIES = [TensorEntry("a", 0, 99, 5, "int8", (2,)), TensorEntry('", "file_crc32c": 5}', 99, 99)]
SHAPES = [ShapeRecord("w", 'x}, "tensor_payload": []', (3,))]
INDEX = encode_index(META, ENTRIES, SHAPES, checksum=True)
COLLECTIONS = encode_collections(
    {"collections": {"losses": {}}, "_meta": {"num_workers": 8, "run_id": "3f0c9a"}}, checksum=True
)


def test_a_file_with_its_checksum_is_the_file_without_it_to_a_reader():
    plain = encode_index(META, ENTRIES, SHAPES)
    assert without_checksum(INDEX) == plain == without_checksum(plain)
    assert parse_index(INDEX, file="f") == parse_index(plain, file="f")
    *_, last = json.loads(INDEX)["meta"]
    assert last == "file_crc32c"
    assert json.loads(COLLECTIONS)["_meta"].keys() == {"num_workers", "run_id", "file_crc32c"}
    assert "file_crc32c" not in parse_collections(COLLECTIONS, file="f")["_meta"]


@pytest.mark.parametrize(
    ("data", "read", "error"),
    [
        (INDEX, parse_index, IndexReaderException),
        (INDEX, AlikeIndexFiles().parse, IndexReaderException),
        (COLLECTIONS, parse_collections, DamagedFile),
    ],
    ids=["index", "alike", "collections"],
)
def test_every_bit_that_flips_is_damage_except_in_the_name_of_the_key(data, read, error):
    key = data.index(b', "file_crc32c": ')
    for at in each(range(len(data)), at_least=100):
        if key <= at < key + 17:  # a reader takes it for a key that it does not know
            continue
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            with pytest.raises(error):
                read(bytes(changed), file="f")


def test_the_error_says_that_the_file_has_changed_and_what_to_do():
    changed = INDEX.replace(b"3f0c9a", b"3f0c9b")
    with pytest.raises(IndexReaderException, match=r"^f is damaged: it has changed .* Restore"):
        parse_index(changed, file="f")
    with pytest.raises(ChangedFile, match=r"its checksum is 0x[0-9a-f]{8}, and it says 0x"):
        without_checksum(changed)


def test_an_edited_file_is_read_without_the_key():
    content = json.loads(INDEX)
    content["meta"]["mode_step"] = 8
    del content["meta"]["file_crc32c"]
    assert parse_index(json.dumps(content).encode(), file="f").meta.mode_step == 8


def test_a_hook_writes_both_files_with_their_checksums(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook, hook.step():
        hook.record("loss", 1.0)
    files = [*(tmp_path / "run").glob("index/*/*"), *(tmp_path / "run").glob("collections/*/*")]
    assert len(files) == 2
    assert all(b'"file_crc32c": ' in file.read_bytes() for file in files)
