"""The blocks of the page on frameworks run, each where what it imports is installed."""

import re
import warnings
from importlib.util import find_spec

import pytest

from tests.docs.pages import ROOT, blocks_of

PAGE = ROOT / "docs" / "frameworks.md"
BLOCKS = [block for block in blocks_of(PAGE) if block.is_python]


def needs(block):
    """The framework that the block imports first."""
    return re.search(r"^import (torch|keras|xgboost|jax|mxnet)$", block.text, re.MULTILINE)[1]


HERE = [block for block in BLOCKS if find_spec(needs(block))]


def test_each_framework_has_a_block():
    assert [needs(block) for block in BLOCKS] == [
        "torch",
        "torch",
        "keras",
        "xgboost",
        "jax",
        "mxnet",
    ]


@pytest.mark.parametrize("block", HERE, ids=map(needs, HERE))
@pytest.mark.filterwarnings("ignore")
def test_a_block_runs_as_it_stands(block, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(block.text, block.place, "exec"), {"out_dir": str(tmp_path / "run")})
