"""`make release VERSION=0.2.0`: set the version, date the changelog, build the wheel and check it.

The working tree must be clean, the version newer than the current one and its tag unused. Then
`pyproject.toml` and `smdebug/__init__.py` get the version, and the changelog's "Unreleased" becomes
its section. What the release leaves behind in the middle of runs is kept for the tests of later ones.
The wheel is built, installed in an empty environment and used; if that fails, everything is as before.
Nothing is committed: the commands for that are printed at the end.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = Path("pyproject.toml")
LIBRARY = Path("layers/smdebug_core/python/smdebug/__init__.py")
CHANGELOG = Path("CHANGELOG.md")
STATES = Path("tests/functions/upgrades/states")
_IN_PROJECT = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
_IN_LIBRARY = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_UNRELEASED = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


class ReleaseRefused(Exception):
    """The release cannot be made; the text says why and what to do."""


def parse_version(text: str) -> tuple[int, int, int]:
    """Return the three numbers of a version such as 0.2.0."""
    if not re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", text, re.ASCII):
        raise ReleaseRefused(f"{text!r} is not a version. Give one such as VERSION=0.2.0.")
    major, minor, patch = map(int, text.split("."))
    return major, minor, patch


def with_version(pattern: re.Pattern[str], source: str, version: str) -> str:
    """Return the source with the version that `pattern` finds replaced."""
    found = pattern.search(source)
    if not found:
        raise ReleaseRefused(f"No line matches {pattern.pattern}.")
    return source[: found.start(1)] + version + source[found.end(1) :]


def current_version(root: Path) -> str:
    """Return the version that both files state."""
    project = _IN_PROJECT.search((root / PROJECT).read_text(encoding="utf-8"))
    library = _IN_LIBRARY.search((root / LIBRARY).read_text(encoding="utf-8"))
    versions = {found[1] if found else "none" for found in (project, library)}
    if len(versions) != 1:
        raise ReleaseRefused(f"{PROJECT} and {LIBRARY} disagree: {', '.join(sorted(versions))}.")
    return versions.pop()


def dated_changelog(changelog: str, version: str, today: date) -> str:
    """Return the changelog with what is unreleased under the version and its date."""
    found = _UNRELEASED.search(changelog)
    if not found or not found[1].strip():
        raise ReleaseRefused(
            f'{CHANGELOG} lists nothing under "## [Unreleased]". Describe what changed first.'
        )
    section = f"## [Unreleased]\n\n## [{version}] - {today.isoformat()}\n{found[1]}"
    return changelog[: found.start()] + section + changelog[found.end() :]


def check_repository(root: Path, version: str) -> None:
    """Refuse a tree with changes, a tag that exists and a version that is not newer."""
    changes = _output_of(root, "git", "status", "--porcelain")
    if changes:
        raise ReleaseRefused(f"The working tree has changes. Commit them first:\n{changes}")
    if _output_of(root, "git", "tag", "--list", f"v{version}"):
        raise ReleaseRefused(f"The tag v{version} exists. Choose a newer version.")
    current = current_version(root)
    if parse_version(version) <= parse_version(current):
        raise ReleaseRefused(f"{version} is not newer than {current}, the current version.")


def write_version(root: Path, version: str, today: date) -> dict[Path, str]:
    """Write the version into the three files; return what was in them."""
    before = {path: (root / path).read_text(encoding="utf-8") for path in (PROJECT, LIBRARY, CHANGELOG)}
    after = {
        PROJECT: with_version(_IN_PROJECT, before[PROJECT], version),
        LIBRARY: with_version(_IN_LIBRARY, before[LIBRARY], version),
        CHANGELOG: dated_changelog(before[CHANGELOG], version, today),
    }
    _write(root, after)
    return before


def keep_state(root: Path, version: str) -> None:
    """Keep what the release leaves behind in the middle of runs: later releases must go on with it."""
    keep = [sys.executable, "-m", "tests.functions.upgrades.kept_state", version]
    subprocess.run(keep, cwd=root, check=True, stdout=subprocess.DEVNULL)


def build_and_check(root: Path, version: str) -> Path:
    """Build the wheel, install it in an empty environment and use it; return its path."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(build, cwd=root, check=True)
    subprocess.run([sys.executable, "tests/wheel_check.py", "dist"], cwd=root, check=True)
    wheel = root / "dist" / f"smdebug_serverless-{version}-py3-none-any.whl"
    if not wheel.is_file():
        raise ReleaseRefused(f"The build wrote no {wheel.name}.")
    return wheel


def release(root: Path, version: str, today: date) -> Path:
    """Prepare the release; return the checked wheel."""
    parse_version(version)
    check_repository(root, version)
    before = write_version(root, version, today)
    try:
        keep_state(root, version)
        return build_and_check(root, version)
    except BaseException:
        _write(root, before)
        (root / STATES / f"{version}.json").unlink(missing_ok=True)
        raise


def _write(root: Path, texts: dict[Path, str]) -> None:
    for path, text in texts.items():
        (root / path).write_text(text, encoding="utf-8")


def _output_of(root: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Prepare a release.")
    parser.add_argument("version", help="the new version, such as 0.2.0")
    version = parser.parse_args().version
    try:
        wheel = release(ROOT, version, date.today())
    except ReleaseRefused as refused:
        print(refused, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        print(f"The release was undone: {failed}", file=sys.stderr)
        return 1
    print(f"{wheel.relative_to(ROOT)} is ready. Review the changes, then:")
    print(f"  git add {STATES / version}.json")
    print(f"  git commit -am 'Release {version}'")
    print(f"  git tag -a v{version} -m 'Version {version}'")
    print("  git push --follow-tags")
    return 0


if __name__ == "__main__":
    sys.exit(main())
