"""Runs the tests that execute an edited line, in a copy of the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tools.mutate.edits import Edit

_MOST_SECONDS = 60.0  # of tests for one edit
_MOST_TESTS = 200
_MOST_FAILED = 0.02  # of all tests
_GIT = shutil.which("git") or "git"
_PYTEST = ("-m", "pytest", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-m", "not browser")


class TestsByLine(NamedTuple):
    """Which tests execute a line, and how long each takes."""

    seconds: Mapping[str, float]
    at: Mapping[tuple[str, int], frozenset[str]]

    def of(self, file: str, edit: Edit, last_line: int) -> list[str]:
        """Return the tests that execute the edit, the fastest first."""
        found: set[str] = set()
        if edit.is_imported:
            found = {test for (where, _), tests in self.at.items() if where == file for test in tests}
        for line in range(edit.line, last_line + 1):
            found |= self.at.get((file, line), frozenset())
        chosen, left = [], _MOST_SECONDS
        for test in sorted(found, key=lambda test: (self.seconds[test], test))[:_MOST_TESTS]:
            left -= self.seconds[test]
            if left < 0:
                break
            chosen.append(test)
        return chosen


class Copy:
    """A copy of the checkout in which one module after another is edited."""

    def __init__(self, root: Path, folder: Path):
        self.folder = folder
        listed = subprocess.run(
            [_GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            with suppress(FileNotFoundError):  # deleted, and not committed
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, target, follow_symlinks=False)

    def tests_by_line(self, code: Iterable[str], tests: Sequence[str], processes: int) -> TestsByLine:
        """Run the tests once and note which lines each executes.

        That takes several times as long as usual. A few tests that fail because of it are left out.
        """
        common = os.path.commonpath([str(self.folder / folder) for folder in code])
        result = self.folder / "lines.json"
        run = subprocess.run(
            [sys.executable, *_PYTEST, "-p", "tools.mutate.lines", "-n", str(processes), *tests],
            cwd=self.folder,
            env={**os.environ, "MUTATE_ROOM": common, "MUTATE_LINES": str(result)},
            capture_output=True,
            text=True,
            check=False,
        )
        seconds: dict[str, float] = {}
        at: dict[tuple[str, int], frozenset[str]] = defaultdict(frozenset)
        failed: set[str] = set()
        parts = list(self.folder.glob("lines.json.*"))
        for part in parts:
            noted = json.loads(part.read_text(encoding="utf-8"))
            seconds |= noted["tests"]
            failed |= set(noted["failed"])
            for file, line, names in noted["lines"]:
                at[os.path.relpath(file, self.folder), line] |= frozenset(names)
        if not seconds or len(failed) > _MOST_FAILED * len(seconds):
            raise SystemExit(f"The tests fail without any edit:\n{run.stdout[-3000:]}{run.stderr[-2000:]}")
        if failed:
            print(f"Left out, because they fail without any edit: {', '.join(sorted(failed))}", flush=True)
            at = defaultdict(frozenset, {line: names - failed for line, names in at.items()})
        return TestsByLine(seconds, at)

    def is_noticed(self, file: str, edit: Edit, tests: TestsByLine, last_line: int) -> bool | None:
        """Return whether a test fails with the edit; None if no test executes it."""
        chosen = tests.of(file, edit, last_line)
        if not chosen:
            return None
        path = self.folder / file
        original = path.read_bytes()
        try:
            path.write_bytes(edit.apply(original))
            run = subprocess.run(
                [sys.executable, *_PYTEST, "-x", *chosen],
                cwd=self.folder,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                check=False,
                timeout=30 + 4 * sum(tests.seconds[test] for test in chosen),
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return True
        finally:
            path.write_bytes(original)
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                compiled.unlink()
        return run.returncode != 0
