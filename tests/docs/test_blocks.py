"""Every block of code in the documentation runs as pasted and prints what its page shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import FRAMEWORK_PAGES, PAGES, ROOT, blocks_of, name_of

# Why a block is not run. Add a reason deliberately.
REASONS = {
    "needs an AWS account",
    "needs a checkout and the network",
    "installs packages",
    "needs a deployed debugger",
    "needs an account of Slack",
    "is part of a CDK app of yours",
    "needs a training in progress",
    "runs until Ctrl-C",
    "takes minutes",
    "needs Airflow",
    "needs MLflow",
    "needs a collector",
    "needs W&B",
    "needs AWS accounts",
    "needs Ray",
    "needs Slurm",
    "needs trackio",
    "needs a training script",
}
WITH_CODE = [
    page
    for page in PAGES
    if any(block.is_run for block in blocks_of(page)) and name_of(page) not in FRAMEWORK_PAGES
]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path):
    if "tests/golden" in page.read_text(encoding="utf-8"):  # the page says that it needs a checkout
        shutil.copytree(ROOT / "tests/golden/runs", tmp_path / "tests/golden/runs")
    sources = [ROOT / "layers/smdebug_core/python", ROOT / "rules", ROOT]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.run_page", name_of(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources)), "COLUMNS": "110"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_block_that_is_not_run_has_a_known_reason():
    reasons = {
        block.place: block.not_run_because
        for page in PAGES
        for block in blocks_of(page)
        if block.not_run_because
    }
    assert {place: why for place, why in reasons.items() if why not in REASONS} == {}
    assert set(reasons.values()) == REASONS, "remove a reason that no block has"


def test_most_blocks_run():
    code = [block for page in PAGES for block in blocks_of(page) if block.is_code]
    python = [block for block in code if block.is_python]
    assert len([block for block in python if block.is_run]) >= 0.9 * len(python)


def test_the_main_guides_have_code():
    names = {name_of(page) for page in WITH_CODE}
    assert {"docs/quick-start-any-loop.md", "docs/saving.md", "docs/rules.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_has_a_known_kind(page):
    known = {"python", "json", "yaml", "text", "text output", "console", "sh"}
    assert [block.place for block in blocks_of(page) if block.kind not in known] == []
