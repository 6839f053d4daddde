"""Every block of code in the documentation runs and prints what its page shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smdebug.saving import singleton
from tests.docs.pages import PAGES, ROOT, Block, blocks_of, commands_in, name_of
from tests.rules.made_runs import made_run
from tests.service.stocked import failing_run

OLD_RUN = ROOT / "tests" / "golden" / "runs" / "single_worker"
# Blocks that are not run, by page and reason. Add a new one deliberately.
NOT_RUN = [
    ("docs/asking.md", "needs an AWS account"),
    ("docs/asking.md", "needs the logs of a stack"),
    ("docs/deploy.md", "it needs the deployed stack"),
    ("docs/deploy.md", "it needs the deployed stack"),
    ("docs/deploy.md", "it is part of a CDK app of yours"),
]
# These blocks need frameworks: tests/frameworks/test_page.py runs them.
RUN_ELSEWHERE = {"docs/frameworks.md"}
WITH_CODE = [
    page
    for page in PAGES
    if any(block.is_python for block in blocks_of(page)) and name_of(page) not in RUN_ELSEWHERE
]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(singleton, "_hook", None)  # no hook of another page or test
    names = given_names(tmp_path)
    printed = ""
    for block in blocks_of(page):
        if block.is_python and not block.not_run_because:
            names["out_dir"] = str(tmp_path / f"out-{block.line}")
            if block.file_name:
                Path(block.file_name).write_text(block.text, encoding="utf-8")
            printed = output_of(block, names)
        elif block.kind == "text output":
            assert printed == block.text, f"{block.place} is not the output of the block before it"
        elif block.kind == "console":
            for command, output in commands_in(block):
                if is_ours(command):
                    assert run(command) == output, f"{block.place}: {command}"


def given_names(folder: Path) -> dict[str, Any]:
    """Return the names that pages may use: `run_path`, `old_run`, `debugger`, `out_dir`."""
    steps = {step: {"loss": [1.0], "dense_weight": [2.0]} for step in range(4)}
    made_run(steps, folder / "run")
    shutil.copytree(OLD_RUN, folder / "old_run")
    return {
        "__name__": "__main__",
        "run_path": str(folder / "run"),
        "old_run": str(folder / "old_run"),
        "debugger": failing_run().debugger,
    }


def output_of(block: Block, names: dict[str, Any]) -> str:
    """Run the block and return its output; a traceback names the line of the page."""
    code = compile("\n" * (block.line - 1) + block.text, name_of(block.page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return without_log_lines(printed.getvalue())


def is_ours(command: str) -> bool:
    """Whether the command is part of the library; others install or build something."""
    words = shlex.split(command)
    return words[0].startswith("smdebug") or words[:2] == ["python", "-m"]


def run(command: str) -> str:
    bin_of_this_python = Path(sys.executable).parent
    path = f"{bin_of_this_python}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        shlex.split(command),
        check=False,
        timeout=120,  # a command that waits for input belongs in a block of kind sh
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "PYTHONWARNINGS": "error"},
    )
    assert not done.stderr, done.stderr
    return without_log_lines(done.stdout)


def without_log_lines(text: str) -> str:
    return re.sub(r"^\[\d{4}-\d\d-\d\d .*\n", "", text, flags=re.MULTILINE)


def not_run() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in blocks_of(page):
            if block.not_run_because:
                yield name_of(page), block.not_run_because


def test_the_blocks_that_are_not_run_are_listed_here():
    assert list(not_run()) == NOT_RUN


def test_the_main_guides_have_code():
    names = {name_of(page) for page in WITH_CODE}
    assert {"README.md", "docs/saving.md", "docs/trials.md", "docs/rules.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_has_a_known_kind(page):
    known = {"python", "json", "text", "text output", "console", "sh"}
    assert [block.place for block in blocks_of(page) if block.kind not in known] == []
