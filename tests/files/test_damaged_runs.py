"""The damaged files of the golden runs: each is refused, and its line in the README gives the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdebug.exceptions import DamagedFile, IndexReaderException
from smdebug.files import names
from smdebug.files.collections_file import parse_collections
from smdebug.files.event_reading import (
    iterate_records,
)
from smdebug.files.index import parse_index
from smdebug.storage.memory import MemoryStorage
from tests.support.golden_records import GOLDEN
from tests.support.looking import each
from tests.trials.writing import begin, open_trial

DAMAGED = GOLDEN / "damaged"


def corpus(folder):
    return sorted(path for path in (DAMAGED / folder).iterdir())


def named(path: Path):
    return path.stem


@pytest.mark.parametrize("path", corpus("events"), ids=named)
def test_damaged_event_files_are_refused(path):
    with pytest.raises(DamagedFile, match=path.name):
        list(iterate_records(path.read_bytes(), file=path.name))


# The old library counts the steps of these index files: only a value of theirs cannot be read.
WITHOUT_VALUES = {"meta_event_file_empty", "tensor_length_15"}


@pytest.mark.parametrize(
    "path", [path for path in corpus("index") if path.stem not in WITHOUT_VALUES], ids=named
)
def test_damaged_index_files_are_refused(path):
    with pytest.raises(IndexReaderException, match=path.name):
        parse_index(path.read_bytes(), file=path.name)


@pytest.mark.parametrize("stem", sorted(WITHOUT_VALUES))
def test_the_step_of_an_index_file_without_values_counts_and_its_value_is_refused(stem):
    storage = begin(MemoryStorage())
    index = (DAMAGED / "index" / f"{stem}.json").read_bytes()
    storage.write(names.index_key(0, "worker_0"), index)
    if event_file := parse_index(index, file=stem).meta.event_file_name:
        storage.write(event_file, bytes(1000))
    trial = open_trial(storage)
    assert trial.steps() == [0]
    with pytest.raises(DamagedFile):
        trial.tensor(trial.tensor_names()[0]).value(0)


@pytest.mark.parametrize("path", corpus("collections"), ids=named)
def test_damaged_collections_files_are_refused(path):
    with pytest.raises(DamagedFile, match=path.name):
        parse_collections(path.read_bytes(), file=path.name)


def test_every_damaged_file_has_its_line_in_the_readme():
    readme = (DAMAGED / "README.md").read_text()
    for folder in ("events", "index", "collections"):
        for path in each(corpus(folder), at_least=20):
            assert f"`{folder}/{path.name}`" in readme
