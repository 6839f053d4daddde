"""Commands, make targets and extras that the documentation names exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import SYSTEM
from tests.docs.pages import PAGES, ROOT, blocks_of, name_of, text_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))


def code_of(page: Path) -> str:
    """Return the code of a page: command fences, and backquotes within sentences."""
    fences = [
        block.text for block in blocks_of(page) if block.kind in {"console", "sh", "text"} or block.is_python
    ]
    return "\n".join([*fences, *re.findall(r"`([^`\n]+)`", text_of(page))])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_a_page_names_exists(page):
    named = set(re.findall(r"(?:^|\s)make ([a-z][a-z-]*)", code_of(page), re.MULTILINE))
    assert named <= TARGETS


@pytest.mark.parametrize("variable", ["PYTHON", "VENV"])
def test_a_python_that_is_too_old_is_refused_before_anything_is_installed(variable, tmp_path):
    old = tmp_path / "old"
    python = old / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n[ $1 = --version ] && echo Python 3.10.13\n")  # else it fails
    python.chmod(0o755)
    assignments = {
        "PYTHON": [f"PYTHON={python}", f"VENV={tmp_path / 'new'}"],
        "VENV": [f"PYTHON={sys.executable}", f"VENV={old}"],
    }
    done = subprocess.run(
        ["make", "--no-print-directory", "setup", *assignments[variable]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Python 3.10.13" in done.stdout
    assert [path.name for path in tmp_path.rglob("*")] == ["old", "bin", "python"]


def test_the_readme_names_the_two_commands():
    named = set(re.findall(r"make ([a-z]+)", code_of(ROOT / "README.md")))
    assert {"demo", "test"} <= named


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_command_that_a_page_names_is_installed_with_the_library(page):
    code = code_of(page)
    called = set(re.findall(r"^(?:\$ )?(smdebug-[a-z-]+) ", code, re.MULTILINE))
    assert called - {"smdebug-serverless"} <= set(PROJECT["scripts"])
    for module in re.findall(r"python -m ([\w.]+)", code):
        assert find_spec(module), module


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_extra_that_a_page_names_exists(page):
    text = text_of(page)
    named = re.findall(r"(?:smdebug-serverless|pip install \"?\.)\[([\w,]+)\]", text)
    wanted = {extra for extras in named for extra in extras.split(",")}
    assert wanted <= set(PROJECT["optional-dependencies"])


def test_the_page_on_installing_lists_every_extra_for_users():
    listed = set(re.findall(r"^\| `([a-z0-9]+)` \|", text_of(ROOT / "docs" / "install.md"), re.MULTILINE))
    assert listed == set(PROJECT["optional-dependencies"]) - {"dev", "infra"}


def listed(variable: str) -> list[str]:
    """The words of a variable of the Makefile."""
    (words,) = re.findall(rf"^{variable} := ((?:.*\\\n)*.+)$", MAKEFILE, re.MULTILINE)
    return words.replace("\\\n", "").split()


@pytest.mark.parametrize(
    ("variable", "below"),
    [("BETWEEN_ROOMS", "tests"), ("NEWEST_ROOMS", "tests"), ("OLDEST_ROOMS", "tests/frameworks/pytorch")],
)
def test_what_other_versions_run_exists(variable, below):
    assert [name for name in listed(variable) if not (ROOT / below / name).exists()] == []
    assert listed(variable)


def test_tests_of_the_whole_are_left_to_their_target_unless_a_path_asks_for_them(request):
    def choice(*words: str) -> list[str]:
        done = subprocess.run(
            ["make", "-n", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        )
        return re.findall(r'pytest .*-m "((?:not )?system)\b', done.stdout)

    assert choice("test") == ["not system"]
    assert choice("test", "ARGS=-k trial") == ["not system"]
    assert choice("test", "ARGS=tests/e2e") == []
    assert choice("test-system") == ["system"]
    assert [place for place in SYSTEM if not (ROOT / "tests" / place).exists()] == []
    assert not any(request.path.is_relative_to(ROOT / "tests" / place) for place in SYSTEM)
    assert request.node.get_closest_marker("system") is None


def test_the_newest_version_runs_the_handlers_beside_what_leans_on_the_interpreter():
    def given(*words: str) -> list[str]:
        command = ["make", "-n", "-C", str(ROOT), "test-version", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        chosen = done.stdout.rpartition("-m pytest")[2]
        return re.findall(r"tests/(\S+)", chosen)

    assert given("BETWEEN=yes") == listed("BETWEEN_ROOMS")
    assert given() == [*listed("BETWEEN_ROOMS"), *listed("NEWEST_ROOMS")]
