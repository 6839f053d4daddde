"""One set of promises for a table in memory and one in DynamoDB."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.adapters.dynamodb import DynamoItems
from functions.adapters.in_memory import MemoryItems
from functions.ports import ItemChange, ItemStore, Only, Refused
from tests.support.mocked_aws import mocked_aws


@pytest.fixture(scope="module")
def table() -> Iterator[DynamoItems]:
    import boto3

    with mocked_aws():
        client = boto3.client("dynamodb")
        client.create_table(
            TableName="steps",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        yield DynamoItems("steps", client)


_partitions = iter(range(10**9))


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> ItemStore:
    return MemoryItems() if request.param == "memory" else request.getfixturevalue("table")


@pytest.fixture
def pk() -> str:
    return f"partition {next(_partitions)}"


EVERYTHING = {
    "text": "ä/￿",
    "empty": "",
    "whole": -(2**53),
    "fraction": 1_700_000_000.125,
    "bytes": b"\x00\xff",
    "words": frozenset({"a", "ü"}),
    "map": {"a.b#c": {"deep": [1, "two", None]}},
    "list": [1, 2.5, "three"],
    "yes": True,
    "nothing": None,
}


def test_what_is_put_is_got_back_as_it_was(store, pk):
    store.put({"pk": pk, "sk": "s", **EVERYTHING})
    got = store.get(pk, "s")
    assert got == {"pk": pk, "sk": "s", **EVERYTHING}
    assert [type(got["whole"]), type(got["fraction"])] == [int, float]


def test_a_missing_item_is_none(store, pk):
    assert store.get(pk, "s") is None
    assert store.query(pk) == []
    store.delete(pk, "s")


def test_what_was_got_can_be_changed_without_changing_the_table(store, pk):
    store.put({"pk": pk, "sk": "s", "map": {"a": 1}})
    store.get(pk, "s")["map"]["a"] = 2
    assert store.get(pk, "s")["map"] == {"a": 1}


def test_a_query_gives_a_range_of_sort_keys_in_their_order(store, pk):
    for sk in ("STEP#2", "STEP#10", "GROUP#x", "STEP#1", "Übung"):
        store.put({"pk": pk, "sk": sk})
    assert [item["sk"] for item in store.query(pk)] == [
        "GROUP#x",
        "STEP#1",
        "STEP#10",
        "STEP#2",
        "Übung",
    ]
    assert [item["sk"] for item in store.query(pk, first="STEP#1", last="STEP#2")] == [
        "STEP#1",
        "STEP#10",
        "STEP#2",
    ]
    newest = store.query(pk, first="STEP#", last="STEP#￿", limit=2, newest_first=True)
    assert [item["sk"] for item in newest] == ["STEP#2", "STEP#10"]
    assert [item["sk"] for item in store.query(pk, first="STEP#2")] == ["STEP#2", "Übung"]
    assert [item["sk"] for item in store.query(pk, last="STEP#1", limit=5)] == ["GROUP#x", "STEP#1"]


def test_a_long_range_is_returned_whole(store, pk):
    for number in range(40):
        store.put({"pk": pk, "sk": f"{number:03}", "load": b"x" * 60_000})
    assert len(store.query(pk)) == 40
    assert len(store.query(pk, limit=30)) == 30


def test_an_item_is_put_only_if_it_is_absent(store, pk):
    store.put({"pk": pk, "sk": "s", "by": "first"}, Only(absent=True))
    with pytest.raises(Refused):
        store.put({"pk": pk, "sk": "s", "by": "second"}, Only(absent=True))
    assert store.get(pk, "s")["by"] == "first"


def test_an_update_makes_the_item_and_gives_it_back_whole(store, pk):
    after = store.update(pk, "s", set={"a": 1}, add={"n": 2, "words": frozenset({"x"})})
    assert after == {"pk": pk, "sk": "s", "a": 1, "n": 2, "words": frozenset({"x"})}
    after = store.update(pk, "s", add={"n": 2, "words": frozenset({"x", "y"})}, remove=["a"])
    assert after == {"pk": pk, "sk": "s", "n": 4, "words": frozenset({"x", "y"})}


def test_what_is_set_once_stays(store, pk):
    store.update(pk, "s", set_once={"since": 1})
    assert store.update(pk, "s", set_once={"since": 2})["since"] == 1


def test_entries_of_a_map_change_independently(store, pk):
    store.put({"pk": pk, "sk": "s", "outbox": {}})
    store.update(pk, "s", put_in={"outbox": {"a-1.x": {"n": 1}, "b": {"n": 2}}})
    store.update(pk, "s", remove_from={"outbox": ["a-1.x", "never there"]})
    assert store.get(pk, "s")["outbox"] == {"b": {"n": 2}}


@pytest.mark.parametrize(
    ("only", "holds"),
    [
        (Only(present=True), True),
        (Only(absent=True), False),
        (Only(equal={"token": 3}), True),
        (Only(equal={"token": 4}), False),
        (Only(equal={"token": 3, "by": "me"}), True),
        (Only(equal={"token": 3, "by": "you"}), False),
        (Only(equal={"never": 1}), False),
        (Only(below={"lease": 100.5}), True),
        (Only(below={"lease": 100}), False),
        (Only(below={"never": 1}), True),
        (Only(below={"by": "mf"}), True),
        (Only(below={"by": "me"}), False),
        (Only(present=True, below={"lease": 101}), True),
    ],
)
def test_a_write_happens_only_under_its_condition(store, pk, only, holds):
    store.put({"pk": pk, "sk": "s", "token": 3, "by": "me", "lease": 100})
    if holds:
        assert store.update(pk, "s", set={"done": True}, only=only)["done"]
        store.put({"pk": pk, "sk": "s", "put": True, "token": 3, "lease": 100, "by": "me"}, only)
        assert store.get(pk, "s")["put"]
    else:
        with pytest.raises(Refused):
            store.update(pk, "s", set={"done": True}, only=only)
        with pytest.raises(Refused):
            store.put({"pk": pk, "sk": "s"}, only)
        assert store.get(pk, "s") == {"pk": pk, "sk": "s", "token": 3, "by": "me", "lease": 100}


def test_an_update_that_needs_an_item_makes_none(store, pk):
    with pytest.raises(Refused):
        store.update(pk, "s", add={"token": 1}, only=Only(present=True, below={"lease": 1}))
    assert store.get(pk, "s") is None


def test_a_deleted_item_is_gone(store, pk):
    store.put({"pk": pk, "sk": "s"})
    store.delete(pk, "s")
    assert store.get(pk, "s") is None


def test_an_item_that_has_changed_is_not_deleted(store, pk):
    store.put({"pk": pk, "sk": "s", "n": 2})
    with pytest.raises(Refused):
        store.delete(pk, "s", Only(equal={"n": 1}))
    assert store.get(pk, "s") == {"pk": pk, "sk": "s", "n": 2}
    store.delete(pk, "s", Only(equal={"n": 2}))
    assert store.get(pk, "s") is None


def test_several_changes_happen_together_or_not_at_all(store, pk):
    store.put({"pk": pk, "sk": "a", "n": 1})
    store.put({"pk": pk, "sk": "b", "n": 1})
    first = ItemChange(pk, "a", {"n": 2}, only=Only(equal={"n": 1}))
    with pytest.raises(Refused):
        store.change_together([first, ItemChange(pk, "b", delete=True, only=Only(equal={"n": 9}))])
    assert [item["n"] for item in store.query(pk)] == [1, 1]
    store.change_together([first, ItemChange(pk, "b", delete=True), ItemChange(pk, "c", {"new": True})])
    assert store.query(pk) == [{"pk": pk, "sk": "a", "n": 2}, {"pk": pk, "sk": "c", "new": True}]


def test_threads_in_memory_lose_no_addition():
    store = MemoryItems()

    def add(number: int) -> None:
        for i in range(50):
            store.update("p", "s", add={"n": 1, "f": frozenset({f"{number}-{i}"})})

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    item = store.get("p", "s")
    assert (item["n"], len(item["f"])) == (400, 400)


NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.one_of(st.integers(-5, 5), st.text(max_size=3), st.booleans())
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "set": st.dictionaries(NAMES, VALUES, min_size=1, max_size=2),
        "set_once": st.dictionaries(st.sampled_from(["d", "e"]), VALUES, min_size=1),
        "add": st.dictionaries(st.sampled_from(["n", "m"]), st.integers(-3, 3), min_size=1),
        "remove": st.lists(st.sampled_from(["f", "g"]), min_size=1, unique=True),
        "only": st.builds(
            Only,
            absent=st.booleans(),
            equal=st.dictionaries(st.sampled_from(["a", "n"]), st.integers(-1, 1), max_size=1),
            below=st.dictionaries(st.sampled_from(["n", "m"]), st.integers(-2, 4), max_size=1),
        ),
    },
).filter(lambda change: change.keys() - {"only"})


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_memory_and_dynamodb_agree_on_any_changes(table, changes):
    memory, pk = MemoryItems(), f"partition {next(_partitions)}"

    def tried(store: ItemStore, change: dict) -> object:
        try:
            return store.update(pk, "s", **change)
        except Refused:
            return "refused"

    for change in changes:
        assert tried(memory, change) == tried(table, change)
    assert memory.get(pk, "s") == table.get(pk, "s")


def test_a_refused_write_names_what_was_there(store, pk):
    there = {"pk": pk, "sk": "s", "n": 2, "words": frozenset({"x"})}
    store.put(there)
    no_such = Only(equal={"n": 1})
    for write in (
        lambda: store.put({"pk": pk, "sk": "s"}, no_such),
        lambda: store.update(pk, "s", set={"n": 3}, only=no_such),
        lambda: store.delete(pk, "s", no_such),
        lambda: store.change_together([ItemChange(pk, "s", {"n": 3}, only=no_such)]),
    ):
        with pytest.raises(Refused) as refused:
            write()
        assert refused.value.found == [there]
    with pytest.raises(Refused) as refused:
        store.update(pk, "none", set={"n": 3}, only=Only(present=True))
    assert refused.value.found == []
