"""Shards of a step's files: any cut and any order give what reading all of them gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from functions.evaluation import shards
from functions.evaluation.reading_shards import read_shard
from functions.evaluation.shards import answer_with, cut, files_asked_for, files_in, merged, request_for
from smdebug.storage.memory import MemoryStorage

KEYS = st.text(min_size=1, max_size=12)
FILES = st.dictionaries(KEYS, st.binary(max_size=200), max_size=40)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def answered(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return files_in(through_json(answer_with(files)))


@given(FILES, st.randoms(), st.integers(1, 7), st.integers(1, 9))
def test_any_cut_read_in_any_order_is_the_same_as_all_in_one(files, chance, at_once, least):
    parts = [
        [key for key, _ in shard] for shard in cut([(key, 0) for key in files], at_once=at_once, least=least)
    ]
    answers = [answered({key: files[key] for key in part}) for part in parts]
    chance.shuffle(answers)
    assert merged(answers) == answered(files) == files


@given(FILES, st.lists(st.integers(0, 2), min_size=40, max_size=40))
def test_parts_merge_in_any_grouping(files, places):
    a, b, c = (
        {key: files[key] for key, place in zip(files, places, strict=False) if place == part}
        for part in range(3)
    )
    assert merged([merged([a, b]), c]) == merged([a, merged([b, c])]) == merged([c, b, a]) == files
    assert merged([a, a, b]) == merged([a, b])


@given(st.integers(0, 200), st.integers(1, 40), st.integers(1, 40))
def test_a_cut_has_every_file_once_in_few_shards_that_are_not_small(count, at_once, least):
    files = [(f"index/{n}", n) for n in range(count)]
    found = cut(files, at_once=at_once, least=least)
    assert [file for shard in found for file in shard] == files
    assert len(found) <= at_once
    assert all(len(shard) >= least for shard in found[:-1])


def test_a_request_names_the_files_and_a_function_of_another_version_reads_none():
    request = through_json(request_for("runs/mnist", [("index/a", 0), ("events/b", 12)]))
    assert files_asked_for(request) == [("index/a", 0), ("events/b", 12)]
    assert files_asked_for({**request, "version": shards.VERSION + 1}) == []
    assert files_asked_for({"run": "runs/mnist"}) == []


def test_an_answer_of_another_version_or_a_damaged_one_has_no_files():
    answer = through_json(answer_with({"index/a": b"one", "index/b": b"two"}))
    assert files_in(answer) == {"index/a": b"one", "index/b": b"two"}
    assert files_in(None) == {}
    assert files_in({**answer, "version": shards.VERSION + 1}) == {}
    assert files_in({**answer, "content": answer["content"][:-8]}) == {}
    assert files_in({**answer, "sizes": answer["sizes"][:1]}) == {}
    assert files_in({"version": shards.VERSION}) == {}
    assert files_in({"errorMessage": "Task timed out"}) == {}


def test_an_answer_is_no_larger_than_a_function_may_give(monkeypatch):
    monkeypatch.setattr(shards, "LARGEST_ANSWER", 100)
    found = answered({"a": b"x" * 60, "b": b"y" * 60, "c": b"z" * 20})
    assert found == {"a": b"x" * 60, "c": b"z" * 20}


def test_the_largest_answer_fits_into_six_megabytes_even_if_it_cannot_be_compressed():
    import random

    content = random.Random(1).randbytes(shards.LARGEST_ANSWER // 64 - 100)
    answer = answer_with({f"{n:03}": content for n in range(64)})
    assert len(answer["sizes"]) == 64
    assert len(json.dumps(answer)) < 6_000_000


def test_a_shard_leaves_out_what_cannot_be_read_and_reads_no_more_of_a_file_than_is_asked():
    storage = MemoryStorage("runs/mnist")
    storage.write("index/a", b"whole")
    storage.write("events/b", b"beginning and rest")
    request = request_for("runs/mnist", [("index/a", 0), ("events/b", 9), ("index/gone", 0)])
    answer = through_json(read_shard(lambda run: storage, through_json(request)))
    assert files_in(answer) == {"index/a": b"whole", "events/b": b"beginning"}
