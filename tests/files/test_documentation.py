"""The examples in docs/file-format.md are files that our readers accept."""

import json
import re
from pathlib import Path

import pytest

from smdebug.files.collections_file import LostSteps, parse_collections
from smdebug.files.dtypes import dtype_of
from smdebug.files.index import parse_index

PAGE = (Path(__file__).parents[2] / "docs/file-format.md").read_text()
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_of_an_index_file_is_one():
    index = parse_index(EXAMPLES[0].encode(), file="example")
    extras = {"run_id", "training_run", "previous_step", "steps_before", "saved_at"}
    assert index.meta.extras.keys() == extras
    assert index.shapes == ((4, 3),)


def test_the_example_of_lost_steps_is_one():
    lost = LostSteps.named_in(json.loads(EXAMPLES[2]))
    assert (lost.count, lost.first, lost.last) == (24, 36, 59)
    assert lost.to_meta() == json.loads(EXAMPLES[2])


def test_the_example_of_a_collections_file_is_one():
    collections = parse_collections(EXAMPLES[1].encode(), file="example")
    assert collections["collections"].keys() == {"gradients"}


@pytest.mark.parametrize(("name", "number"), re.findall(r"\| (\w+) \| (\d+) ", PAGE))
def test_the_table_of_dtypes_is_true(name, number):
    assert dtype_of(int(number)).name == name
