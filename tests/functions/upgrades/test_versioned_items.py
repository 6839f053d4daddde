"""The store with formats on both adapters' promises: what is written, and what is refused."""

from __future__ import annotations

import pytest

from functions.adapters.in_memory import MemoryItems
from functions.ports import ItemChange, Only, Refused
from functions.versioned_items import versioned
from smdebug.exceptions import NewerRecord
from smdebug.service.step_index.formats import kind_of

PK = "RUN#runs/mnist"
NEWER = {"pk": PK, "sk": "RUN", "v": 2, "n": 1}


@pytest.fixture
def store():
    return MemoryItems()


@pytest.mark.parametrize(
    ("pk", "sk", "kind"),
    [
        (PK, "RUN", "RUN"),
        (PK, "GROUP#builtin", "GROUP"),
        (PK, "STEP#0000#000000000001#0000", "STEP"),
        ("RUNS", "runs/RUN#1", "RUNS"),
        ("JOB#mnist", "runs/mnist", "JOB"),
        ("CLAIM#f", "mail", "CLAIM"),
        ("BACKTEST#nightly", "SPENT", "BACKTEST"),
    ],
)
def test_an_item_has_the_kind_of_its_keys(pk, sk, kind):
    assert kind_of(pk, sk) == kind


def test_each_write_names_the_format(store):
    items = versioned(store)
    items.put({"pk": PK, "sk": "RUN"})
    assert items.update(PK, "GROUP#a", set={"n": 1})["v"] == 1
    items.change_together([ItemChange(PK, "GROUP#b", {"n": 1})])
    assert [item["v"] for item in store.query(PK)] == [1, 1, 1]


@pytest.mark.parametrize(
    "write",
    [
        lambda items: items.put({"pk": PK, "sk": "RUN"}),
        lambda items: items.put({"pk": PK, "sk": "RUN"}, Only(absent=True)),
        lambda items: items.update(PK, "RUN", set={"n": 2}),
        lambda items: items.update(PK, "RUN", remove=["n"], only=Only(equal={"n": 9})),
        lambda items: items.delete(PK, "RUN"),
        lambda items: items.change_together([ItemChange(PK, "RUN", {"n": 2})]),
        lambda items: items.change_together([ItemChange(PK, "RUN", delete=True)]),
        lambda items: items.get(PK, "RUN"),
        lambda items: items.query(PK),
    ],
)
def test_what_a_newer_release_has_written_is_refused_and_stays(store, write):
    store.put(NEWER)
    with pytest.raises(NewerRecord, match=r"item RUN of RUN#runs/mnist .* it has format 2, .* knows 1"):
        write(versioned(store))
    assert store.get(PK, "RUN") == NEWER


def test_another_condition_that_does_not_hold_is_still_named_so(store):
    items = versioned(store)
    items.put({"pk": PK, "sk": "RUN", "n": 1})
    with pytest.raises(Refused):
        items.update(PK, "RUN", set={"n": 2}, only=Only(equal={"n": 9}))


def test_an_item_from_before_there_were_formats_is_read_and_gets_one(store):
    store.put({"pk": PK, "sk": "RUN", "n": 1})
    items = versioned(store)
    assert items.get(PK, "RUN") == {"pk": PK, "sk": "RUN", "n": 1}
    assert items.update(PK, "RUN", set={"n": 2})["v"] == 1


def test_a_store_with_formats_is_not_wrapped_again(store):
    items = versioned(store)
    assert versioned(items) is items
