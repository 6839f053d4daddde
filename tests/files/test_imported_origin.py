"""What `origin.json` says of a log that a run was imported from."""

from __future__ import annotations

import json

import pytest

from smdebug.files.notes.origin import ImportedFrom, Origin

IMPORTED = ImportedFrom("csv", "/logs/a.csv", "epoch", {"val_loss": "loss (eval)"}, {"texts": 3})


def test_it_comes_back_as_it_was_written():
    assert Origin.parse(Origin(imported=IMPORTED).encode()).imported == IMPORTED
    assert "imported" not in json.loads(Origin().encode())
    assert Origin.parse(Origin().encode()).imported is None


def test_a_secret_in_the_place_of_a_log_is_left_out():
    source = ImportedFrom("csv", "https://user:hunter22secret@host/a.csv")
    assert b"hunter22secret" not in Origin(imported=source).encode()


@pytest.mark.parametrize("content", [3, [], {}, {"format": 3}, {"source": "a"}])
def test_what_cannot_be_read_of_it_is_none(content):
    assert Origin.parse(json.dumps({"imported": content}).encode()).imported is None


def test_values_of_wrong_types_are_left_out():
    content = {
        "format": "csv",
        "series": {"a": 3, "b": "loss (train)"},
        "left_out": {"a": "x", "b": True, "c": 2},
    }
    imported = Origin.parse(json.dumps({"imported": content}).encode()).imported
    assert imported == ImportedFrom("csv", "", "step", {"a": "", "b": "loss (train)"}, {"c": 2})
