"""Collections, and the file that lists them."""

import json
from pathlib import Path

import pytest

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys

RUNS = Path(__file__).parent.parent / "golden" / "runs"
COLLECTIONS_FILES = sorted(RUNS.glob("*/collections/000000000/*.json"))


@pytest.mark.parametrize("path", COLLECTIONS_FILES, ids=lambda path: str(path.relative_to(RUNS)))
def test_every_collections_file_of_the_old_library_comes_back_byte_for_byte(path):
    assert CollectionManager.load_from_string(path.read_bytes()).to_json() == path.read_text()


def test_a_collection_describes_itself():
    weights = Collection(
        "weights", ["^w"], {"b", "a"}, ReductionConfig(["min"]), {ModeKeys.TRAIN: SaveConfigMode(2)}
    )
    assert list(weights.to_json_dict()) == [
        "name",
        "include_regex",
        "tensor_names",
        "reduction_config",
        "save_config",
        "save_histogram",
    ]
    assert weights.to_json_dict()["tensor_names"] == ["a", "b"]
    assert Collection.from_json(weights.to_json()) == weights
    assert str(weights) == str(weights.to_json_dict())
    assert repr(weights) == "<class Collection: name=weights>"


def test_a_collection_is_found_in_a_set_by_its_name():
    assert hash(Collection("a")) == hash(Collection("a", ["x"]))
    assert Collection("a") != Collection("a", ["x"])
    assert Collection("a") != "a"


def test_include_takes_lists_however_nested():
    collection = Collection("a", "x")
    collection.include(["y", ["z", ("q",)]])
    assert collection.include_regex == ["x", "y", "z", "q"]
    with pytest.raises(SMDebugTypeError):
        collection.include(3)


def test_names_come_and_go():
    collection = Collection("a")
    collection.add_tensor_name("x")
    assert collection.has_tensor_name("x")
    collection.remove_tensor_name("x")
    collection.remove_tensor_name("x")
    assert collection.tensor_names == set()


def test_a_collection_without_include_regex_has_none():
    assert Collection.from_dict({"name": "a"}).include_regex == []
    assert Collection.from_dict({"name": "a", "include_regex": False}).include_regex == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"tensor_names": "a"},
        {"tensor_names": [1]},
        {"include_regex": [1]},
        {"include_regex": 1},
        {"save_config": SaveConfigMode()},
        {"save_config": 10},
        {"reduction_config": "min"},
    ],
)
def test_what_is_not_of_its_type_is_refused(wrong):
    with pytest.raises(SMDebugTypeError):
        Collection("a", **wrong)
    if "include_regex" not in wrong:
        ((field, value),) = wrong.items()
        with pytest.raises(SMDebugTypeError):
            setattr(Collection("a"), field, value)


@pytest.mark.parametrize("wrong", [3, {}, {"name": 3}, {"name": "a", "reduction_config": "min"}])
def test_what_describes_no_collection_is_refused(wrong):
    with pytest.raises(SMDebugValueError):
        Collection.from_dict(wrong)


def test_a_collection_is_created_when_asked_for():
    manager = CollectionManager()
    with pytest.raises(SMDebugError, match="custom has not been created"):
        manager.get("custom", create=False)
    assert manager.get("custom") is manager.get("custom", create=False)


def test_adding_a_collection_replaces_the_one_of_its_name():
    manager = CollectionManager(create_default=True)
    assert list(manager.get_collections()) == ["all", "default"]
    mine = Collection("all", ["x"])
    manager.add(mine)
    assert manager.get("all") is mine
    manager.add("another")
    assert manager.get("another") == Collection("another")
    with pytest.raises(SMDebugTypeError):
        manager.add(3)


def test_the_number_of_workers_is_told_with_the_collections():
    manager = CollectionManager()
    manager.set_num_workers(3)
    manager.update_meta({"run_id": "r"})
    again = CollectionManager.load_from_string(manager.to_json())
    assert again.get_num_workers() == 3
    assert again.meta == {"num_workers": 3, "run_id": "r"}
    assert again == manager
    assert again != CollectionManager({"a": Collection("a")})
    assert manager != 3


def test_only_the_two_known_keys_are_allowed():
    assert CollectionManager.load_from_string(None) is None
    for wrong in ('{"more": 1}', "[]", "{", '{"collections": []}', '{"collections": {"a": 1}}'):
        with pytest.raises(SMDebugValueError):
            CollectionManager.load_from_string(wrong)


def test_collections_may_be_of_another_class():
    class Mine(Collection):
        pass

    manager = CollectionManager({"a": Collection("a", save_config=SaveConfig())})
    again = CollectionManager.load_from_string(manager.to_json(), Mine)
    assert type(again.get("a")) is Mine
    assert json.loads(again.to_json()) == manager.to_json_dict()
