"""`make release`: what it changes and what it refuses."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path

import pytest

from tools import release as module
from tools.release import CHANGELOG, LIBRARY, PROJECT, STATES, ReleaseRefused, current_version, release

ROOT = Path(__file__).parents[1]
TODAY = date(2027, 1, 31)
LOG = """# Changelog

## [Unreleased]

### Fixed

- A defect.

## [0.1.0] - 2026-11-22

### Added

- Everything.
"""


def git(root: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of version 0.1.0 with one unreleased change, and a build that succeeds."""
    for path in (PROJECT, LIBRARY):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / PROJECT).write_text('[project]\nname = "x"\nversion = "0.1.0"\nurl = "1.0"\n')
    (tmp_path / LIBRARY).write_text('"""A library."""\n\n__version__ = "0.1.0"\n')
    (tmp_path / CHANGELOG).write_text(LOG)
    (tmp_path / STATES).mkdir(parents=True)

    def keep_state(root: Path, version: str) -> None:
        (root / STATES / f"{version}.json").write_text("{}")

    monkeypatch.setattr(module, "keep_state", keep_state)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "Begin")
    monkeypatch.setattr(module, "build_and_check", lambda root, version: root / f"{version}.whl")
    return tmp_path


def test_a_release_sets_the_version_and_dates_the_changelog(repository):
    assert release(repository, "0.2.0", TODAY) == repository / "0.2.0.whl"
    assert current_version(repository) == "0.2.0"
    changed = LOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2027-01-31\n")
    assert (repository / CHANGELOG).read_text() == changed
    added = [line for line in git(repository, "diff", "-U0").splitlines() if line[:1] in "+-"]
    assert len([line for line in added if line[:3] not in {"+++", "---"}]) == 6


def test_a_tree_with_changes_is_refused(repository):
    (repository / "new.py").write_text("")
    with pytest.raises(ReleaseRefused, match=r"(?s)Commit them first.*new\.py"):
        release(repository, "0.2.0", TODAY)
    assert current_version(repository) == "0.1.0"


@pytest.mark.parametrize("version", ["", "0.2", "v0.2.0", "0.2.0rc1", "00.2.0", "0.2.0\n"])
def test_what_is_not_a_version_is_refused(repository, version):
    with pytest.raises(ReleaseRefused, match=r"Give one such as VERSION=0\.2\.0"):
        release(repository, version, TODAY)


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9"])
def test_a_version_that_is_not_newer_is_refused(repository, version):
    with pytest.raises(ReleaseRefused, match=r"not newer than 0\.1\.0"):
        release(repository, version, TODAY)


def test_versions_are_compared_as_numbers(repository):
    release(repository, "0.10.0", TODAY)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Release 0.10.0")
    with pytest.raises(ReleaseRefused, match=r"not newer than 0\.10\.0"):
        release(repository, "0.9.0", TODAY)


def test_a_tag_that_exists_is_refused(repository):
    git(repository, "tag", "v0.2.0")
    with pytest.raises(ReleaseRefused, match=r"v0\.2\.0 exists"):
        release(repository, "0.2.0", TODAY)


def test_a_changelog_without_news_is_refused(repository):
    (repository / CHANGELOG).write_text(LOG.replace("### Fixed\n\n- A defect.\n\n", ""))
    git(repository, "commit", "-qam", "Forget the changelog")
    with pytest.raises(ReleaseRefused, match="Describe what changed first"):
        release(repository, "0.2.0", TODAY)
    assert git(repository, "status", "--porcelain") == ""


def test_versions_that_disagree_are_refused(repository):
    (repository / LIBRARY).write_text('__version__ = "0.1.1"\n')
    git(repository, "commit", "-qam", "Forget one")
    with pytest.raises(ReleaseRefused, match=r"disagree: 0\.1\.0, 0\.1\.1"):
        release(repository, "0.2.0", TODAY)


def test_a_wheel_that_fails_its_check_leaves_the_files_as_they_were(repository, monkeypatch):
    def fail(root: Path, version: str) -> Path:
        assert current_version(root) == version
        assert (root / STATES / f"{version}.json").exists()
        raise subprocess.CalledProcessError(1, ["wheel_check.py"])

    monkeypatch.setattr(module, "build_and_check", fail)
    with pytest.raises(subprocess.CalledProcessError):
        release(repository, "0.2.0", TODAY)
    assert git(repository, "status", "--porcelain") == ""


def test_this_project_states_one_version_and_a_changelog_of_it():
    version = current_version(ROOT)
    changelog = (ROOT / CHANGELOG).read_text(encoding="utf-8")
    assert f"\n## [{version}] - 20" in changelog
    assert changelog.count("\n## [Unreleased]\n") == 1
