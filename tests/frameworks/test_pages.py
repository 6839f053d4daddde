"""The pages on frameworks run as pasted, each where what it needs is installed."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.docs.pages import FRAMEWORK_PAGES, ROOT, blocks_of

PAGE = ROOT / "docs" / "frameworks.md"
BLOCKS = [block for block in blocks_of(PAGE) if block.is_python and block.is_run]
PAGES_HERE = [name for name, needed in FRAMEWORK_PAGES.items() if needed and find_spec(needed)]


def needs(block):
    """The framework that the block imports first."""
    return re.search(r"^import (torch|keras|xgboost|jax|mxnet)$", block.text, re.MULTILINE)[1]


HERE = [block for block in BLOCKS if find_spec(needs(block))]


def run(command, folder):
    sources = [ROOT / "layers/smdebug_core/python", ROOT / "rules", ROOT]
    more = {"PYTHONPATH": os.pathsep.join(map(str, sources)), "COLUMNS": "110"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        cwd=folder,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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
def test_a_block_runs_as_pasted(block, tmp_path):
    run(["-c", block.text], tmp_path)


@pytest.mark.parametrize("name", PAGES_HERE)
def test_a_page_runs_as_pasted(name, tmp_path):
    run(["-m", "tests.docs.run_page", name], tmp_path)
