"""The pages on frameworks run as pasted, from top to bottom, each where what it needs is installed."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.docs.pages import FRAMEWORK_PAGES, ROOT, blocks_of

PAGES_HERE = [name for name, needed in FRAMEWORK_PAGES.items() if all(map(find_spec, needed.split()))]


def test_the_page_has_a_block_for_each_framework():
    blocks = [block for block in blocks_of(ROOT / "docs" / "frameworks.md") if block.is_python]
    shown = [
        re.search(r"^import (torch|keras|xgboost|jax)$", block.text, re.MULTILINE)[1] for block in blocks
    ]
    assert shown == ["torch", "torch", "keras", "xgboost", "jax", "jax"]
    assert all(block.is_run for block in blocks)


@pytest.mark.parametrize("name", PAGES_HERE)
def test_a_page_runs_as_pasted(name, tmp_path):
    sources = [ROOT / "layers/smdebug_core/python", ROOT / "rules", ROOT]
    more = {"PYTHONPATH": os.pathsep.join(map(str, sources)), "COLUMNS": "110"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.docs.run_page", name],
        cwd=tmp_path,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
