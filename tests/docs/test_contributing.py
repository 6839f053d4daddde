"""What contributors are given works: `.ci/run`, the hooks before a commit, the workflow and the forms."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT, text_of
from tests.docs.test_commands import MAKEFILE, PROJECT, TARGETS

CI = ROOT / ".ci" / "run"
VERSIONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def loaded(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def ci(commands: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run commands with the functions of `.ci/run`."""
    return subprocess.run(
        ["bash", "-c", f"source {CI}; {commands}"],
        env={**os.environ, "SMDEBUG_CI_LOGS": str(tmp_path / "logs")},
        capture_output=True,
        text=True,
        check=False,
    )


def row(stdout: str, name: str) -> str:
    """The result of a step in the table at the end."""
    (found,) = re.findall(rf"^{name} +(\w+) +\d+ +\d+$", stdout, re.MULTILINE)
    return found


def test_steps_that_pass_end_with_a_table_of_durations(tmp_path):
    done = ci("greet() { echo hello; }; step greet; step true; finish", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nhello\n" in done.stdout
    assert [row(done.stdout, name) for name in ("greet", "true", "all")] == ["passed"] * 3


def test_a_failed_step_stops_no_other_and_fails_the_whole(tmp_path):
    done = ci("step false; step true; finish", tmp_path)
    assert done.returncode == 1
    assert [row(done.stdout, name) for name in ("false", "true", "all")] == [
        "FAILED",
        "passed",
        "FAILED",
    ]


def test_steps_run_side_by_side(tmp_path):
    pipe = tmp_path / "pipe"  # whoever opens it waits for the other
    os.mkfifo(pipe)
    lanes = f"reads() {{ step timeout 60 cat {pipe}; }}; writes() {{ step tee {pipe} <<<news; }}"
    done = ci(f"{lanes}; step true; side_by_side reads writes; finish", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row(done.stdout, name) for name in ("true", "timeout 60 cat .+", "tee .+")] == ["passed"] * 3
    (log,) = (tmp_path / "logs").glob("*-timeout-*.log")
    assert log.read_text() == "news\n"


def test_a_step_that_fails_beside_others_shows_its_output_and_fails_the_whole(tmp_path):
    steps = "fails() { echo why; return 3; }; passes() { echo unimportant; }"
    lanes = "first() { step fails; step true; }; second() { step passes; }"
    done = ci(f"{steps}; {lanes}; side_by_side first second; finish", tmp_path)
    assert done.returncode == 1
    assert "\nwhy\n== FAILED with exit code 3: fails\n" in done.stdout
    assert "unimportant" not in done.stdout, "it would stand between the lines of other steps"
    assert [row(done.stdout, name) for name in ("fails", "true", "passes")] == ["FAILED", "passed", "passed"]


def test_steps_that_end_without_a_result_fail_the_whole(tmp_path):
    done = ci("killed() { kill -9 $BASHPID; }; side_by_side killed; finish", tmp_path)
    assert done.returncode == 1


def test_schedules_take_only_what_the_tests_beside_them_leave(tmp_path):
    done = ci("make() { echo at $(nice); }; side_by_side check_handlers check_writer; finish", tmp_path)
    assert done.returncode == 0
    logs = [*(tmp_path / "logs").glob("*-make-*.log")]
    assert [log.read_text() for log in logs] == ["at 19\n"] * 4


def test_a_test_run_without_tests_fails(tmp_path):
    (tmp_path / "test_nothing.py").write_text("")
    pytest_run = f"{sys.executable} -m pytest -q -p no:cacheprovider {tmp_path}"
    done = ci(f"tests() {{ {pytest_run}; }}; step tests; finish", tmp_path)
    assert "tests: no tests ran" in done.stdout
    assert (row(done.stdout, "tests"), done.returncode) == ("FAILED", 1)


def test_the_closing_lines_of_test_runs_are_repeated_at_the_end(tmp_path):
    closing = ["FAILED tests/a.py::test_b - x", "3 failed, 12 passed, 1 skipped in 3.20s"]
    printed = "; ".join(f"echo '{line}'" for line in closing)
    done = ci(f"pytest() {{ {printed}; return 1; }}; step pytest; finish", tmp_path)
    repeated = done.stdout.split("== test results\n")[1].split("\n== durations")[0]
    assert repeated.splitlines() == [f"pytest: {line}" for line in closing]


def test_a_python_that_was_asked_for_must_be_there(tmp_path):
    done = ci("main 3.99", tmp_path)
    assert done.returncode == 1
    assert row(done.stdout, "Python 3.99") == "FAILED"


def test_the_versions_between_the_oldest_and_the_newest_run_less(tmp_path):
    said = "make() { echo said $*; }"
    done = ci(
        f"{said}; for version in {' '.join(VERSIONS)}; do check_version $version python; done", tmp_path
    )
    calls = [line for line in done.stdout.splitlines() if line.startswith("said ")]
    assert len(calls) == len(VERSIONS) >= 3
    assert ["BETWEEN=yes" in call for call in calls[1:]] == [True] * (len(VERSIONS) - 2) + [False]


def test_the_workflow_runs_each_supported_version():
    job = loaded(".github/workflows/ci.yml")["jobs"]["ci"]
    assert job["strategy"]["matrix"]["python"] == VERSIONS
    assert f"${{1:-{' '.join(VERSIONS)}}}" in text_of(CI)
    assert ".ci/run ${{ matrix.python }}" in [step.get("run") for step in job["steps"]]


def test_a_short_help_and_a_long_one_list_every_target_between_them():
    listed = [
        subprocess.run(["make", "-C", str(ROOT), target], capture_output=True, text=True, check=True)
        for target in ("help", "help-all")
    ]
    usual, others = [
        {line.split()[0] for line in done.stdout.splitlines() if not line.startswith("make")}
        for done in listed
    ]
    assert len(usual) <= 12
    assert usual & others == set()
    assert usual | others == TARGETS - {"help"}


def test_the_hooks_before_a_commit_are_the_checks_of_the_makefile():
    (repository,) = loaded(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local", "another repository has tools of other versions"
    entries = [hook["entry"].replace(" --force-exclude", "") for hook in repository["hooks"]]
    checks = re.findall(
        r"^\t@\$\(BIN\)/((?:ruff check|ruff format --check|mypy)(?: \$\(SOURCES\))?)$",
        MAKEFILE,
        re.MULTILINE,
    )
    assert entries == [".venv/bin/" + check.replace(" $(SOURCES)", "") for check in checks]


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=str)
def test_a_form_has_what_github_asks_for(path):
    form = loaded(str(path))
    if path.name == "config.yml":
        assert form.keys() <= {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= form.keys()
    ids = [item["id"] for item in form["body"] if item["type"] != "markdown"]
    assert len(set(ids)) == len(ids)
    assert {item["type"] for item in form["body"]} <= {
        "markdown",
        "textarea",
        "input",
        "dropdown",
        "checkboxes",
    }
