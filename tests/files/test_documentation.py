"""The examples in docs/file-format.md are files that our readers accept."""

import re
from pathlib import Path

import pytest

from smdebug.files.collections_file import parse_collections
from smdebug.files.dtypes import dtype_of
from smdebug.files.index import parse_index

PAGE = (Path(__file__).parents[2] / "docs/file-format.md").read_text()
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_of_an_index_file_is_one():
    index = parse_index(EXAMPLES[0].encode(), file="example")
    assert index.meta.extras.keys() == {"run_id", "training_run", "previous_step", "saved_at"}
    assert index.shapes == ((4, 3),)


def test_the_example_of_a_collections_file_is_one():
    collections = parse_collections(EXAMPLES[1].encode(), file="example")
    assert collections["collections"].keys() == {"gradients"}


@pytest.mark.parametrize(("name", "number"), re.findall(r"\| (\w+) \| (\d+) ", PAGE))
def test_the_table_of_dtypes_is_true(name, number):
    assert dtype_of(int(number)).name == name
