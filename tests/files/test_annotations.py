"""The file of what people have written about a run: what is kept, left out and refused."""

from __future__ import annotations

import json

import pytest

from smdebug.exceptions import DamagedFile, SMDebugValueError
from smdebug.files.notes.annotations import LONGEST_NOTE, MOST_TAGS, Annotations
from smdebug.files.notes.origin import Origin


def test_what_was_not_written_stays_as_the_training_gave_it():
    origin = Origin(tags=("sweep",), note="first try", config={"lr": 0.1})
    assert Annotations().over(origin) == origin
    found = Annotations().with_changes({"note": "", "pinned": True}).over(origin)
    assert (found.tags, found.note, found.pinned, found.config) == (("sweep",), "", True, {"lr": 0.1})


def test_a_change_leaves_the_rest_and_is_read_again_as_it_was_written():
    first = Annotations().with_changes({"tags": ["b", " a  b ", "b", ""]})
    assert first.tags == ("b", "a b")
    second = first.with_changes({"note": "two\nlines"})
    assert Annotations.parse(second.encode()) == second
    assert second.tags == ("b", "a b")


def test_secrets_are_neither_written_nor_read():
    written = Annotations().with_changes({"note": "token=hf_abcdefghijklmnopqrstuvwxyzABCDEF", "tags": ["a"]})
    assert b"hf_abc" not in written.encode()
    older = json.dumps({"note": "password=hunter2hunter2"}).encode()
    assert "hunter2" not in (Annotations.parse(older).note or "")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "at least one of"),
        ({"path": "x"}, "nothing else"),
        ({"tags": "a"}, "list"),
        ({"tags": [1]}, "list"),
        ({"tags": ["a,b"]}, "comma"),
        ({"tags": ["x" * 101]}, "at most 50 tags of at most 100 characters"),
        ({"tags": [str(number) for number in range(MOST_TAGS + 1)]}, "at most 50 tags"),
        ({"note": "x" * (LONGEST_NOTE + 1)}, "at most 2,000 characters"),
        ({"note": None}, "text"),
        ({"pinned": 1}, "true or false"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_limit(changes, word):
    with pytest.raises(SMDebugValueError, match=word):
        Annotations().with_changes(changes)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"[" * 100_000, b" " * (1 << 19)])
def test_a_damaged_file_is_said(data):
    with pytest.raises(DamagedFile):
        Annotations.parse(data)


def test_values_of_other_types_are_left_out():
    data = json.dumps({"tags": [1, "a", None], "note": 7, "pinned": "yes"}).encode()
    assert Annotations.parse(data) == Annotations(tags=("a",))
