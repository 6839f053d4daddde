import json

import pytest

from smdebug.exceptions import DamagedFile, SMDebugTypeError
from smdebug.files.collections_file import encode_collections, parse_collections
from tests.support.golden_records import GOLDEN

FILES = sorted((GOLDEN / "runs").glob("*/collections/*/*.json"))


def parse(content):
    return parse_collections(json.dumps(content).encode(), file="collections/w.json")


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join((path.parts[-4], path.name)))
def test_collections_of_the_reference_runs_are_written_again_to_the_byte(path):
    data = path.read_bytes()
    assert encode_collections(parse_collections(data, file=str(path))) == data


def test_extras_inside_collections_and_meta_are_kept():
    content = {
        "collections": {"losses": {"name": "losses", "ours": 1}},
        "_meta": {"num_workers": 3, "run_id": "r"},
    }
    assert parse(content) == content


def test_one_worker_is_expected_unless_the_file_says_more():
    assert parse({"collections": {}})["_meta"] == {"num_workers": 1}
    assert parse({"collections": {}, "_meta": {}})["_meta"] == {"num_workers": 1}


def test_configurations_may_be_null():
    collection = {
        "reduction_config": None,
        "save_config": {"TRAIN": None, "EVAL": {"end_step": None}},
    }
    assert parse({"collections": {"x": collection}})["collections"]["x"] == collection


def test_a_regex_is_not_judged_here():
    assert parse({"collections": {"x": {"include_regex": ["(unclosed"]}}})


def test_the_error_names_the_file_and_the_place():
    with pytest.raises(
        DamagedFile, match=r"collections/w\.json.*collections\['x'\]\.tensor_names\[1\]"
    ):
        parse({"collections": {"x": {"tensor_names": ["a", 5]}}})


def test_only_plain_data_is_written():
    with pytest.raises(SMDebugTypeError, match="plain data"):
        encode_collections({"collections": {"x": object()}})


def test_a_number_of_workers_that_nobody_has_is_refused():
    """A list of all their names would take more memory than a function has."""
    with pytest.raises(DamagedFile, match="5000000, and at most 100000 can save a run"):
        parse_collections(b'{"collections": {}, "_meta": {"num_workers": 5000000}}', file="x")
