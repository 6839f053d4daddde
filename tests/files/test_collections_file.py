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
    with pytest.raises(DamagedFile, match=r"collections/w\.json.*collections\['x'\]\.tensor_names\[1\]"):
        parse({"collections": {"x": {"tensor_names": ["a", 5]}}})


def test_only_plain_data_is_written():
    with pytest.raises(SMDebugTypeError, match="plain data"):
        encode_collections({"collections": {"x": object()}})


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"run_id": "x" * 1025}, "run_id has 1025 characters"),
        ({"replicas": {"chief": "x" * 2000, "workers": 2}}, "replicas.chief has 2000 characters"),
        ({"training_run": 10**12}, "training_run is 1000000000000, and must be below"),
        ({"resumed_at": 10**400}, "resumed_at is an enormous number, and must be below"),
        ({"last_step": -(10**12)}, "last_step is -1000000000000, and must be below"),
    ],
)
def test_a_name_or_number_that_would_fill_the_records_of_a_run_is_refused(meta, problem):
    with pytest.raises(DamagedFile, match=f"^w is damaged: _meta.{problem}"):
        parse_collections(json.dumps({"collections": {}, "_meta": meta}).encode(), file="w")


def test_the_largest_names_and_numbers_of_an_attempt_are_kept():
    meta = {"run_id": "x" * 1024, "training_run": 10**12 - 1, "last_step": None, "resumed_at": 0}
    content = parse_collections(json.dumps({"collections": {}, "_meta": meta}).encode(), file="w")
    assert content["_meta"] == {**meta, "num_workers": 1}


def test_a_number_of_workers_that_nobody_has_is_refused():
    """A list of all their names would take more memory than a function has."""
    with pytest.raises(DamagedFile, match="5000000, and at most 100000 can save a run"):
        parse_collections(b'{"collections": {}, "_meta": {"num_workers": 5000000}}', file="x")
