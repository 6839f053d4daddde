"""A copy of the checkout in which one module after another is edited, and its tests run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tools.mutate.edits import Edit
from tools.mutate.lines import STARTED

_MOST_TESTS = 200
_MOST_FAILED = 0.02  # of all tests
_MOST_SHOWN = 20
_TRACE_SECONDS = 900.0
LEAST_SECONDS = 15.0
"""The time that the tests of an edit have at least; a test that takes longer does not end any more."""
_STARTED = "started-by-tests"
_GIT = shutil.which("git") or "git"
_PYTEST = ("-m", "pytest", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider")


class Unsound(Exception):
    """Tests fail in a fresh process although nothing is edited."""


class TestsByLine(NamedTuple):
    """Which tests execute a line, and how long each takes."""

    seconds: Mapping[str, float]
    at: Mapping[tuple[str, int], frozenset[str]]
    imported: frozenset[tuple[str, int]]
    """The lines that are executed while the tests are imported."""
    apart: Mapping[str, frozenset[str]] = MappingProxyType({})
    """The tests that start a process of which nothing is seen, by the module that it runs."""

    def of(self, file: str, edit: Edit, last_line: int, most_seconds: float) -> list[str]:
        """Return the tests that execute the edit.

        One variant of each test comes before all others, those of the module before those of other modules,
        and the fastest first.
        """
        found: set[str] = set(self.apart.get(file, ()))
        if self.is_imported(file, edit, last_line):
            found |= {test for (where, _), tests in self.at.items() if where == file for test in tests}
        for line in range(edit.line, last_line + 1):
            found |= self.at.get((file, line), frozenset())
        by_speed = sorted(found, key=lambda test: (self.seconds[test], test))
        first = {test.partition("[")[0]: test for test in reversed(by_speed)}
        by_speed.sort(key=lambda test: (first[test.partition("[")[0]] != test, _distance(file, test)))
        chosen: list[str] = []
        left = most_seconds
        for test in by_speed[:_MOST_TESTS]:
            if self.seconds[test] <= left or not chosen:
                left -= self.seconds[test]
                chosen.append(test)
        return chosen

    def is_imported(self, file: str, edit: Edit, last_line: int) -> bool:
        """Return whether what the edit changes is computed when a module is imported."""
        lines = range(edit.line, last_line + 1)
        return edit.is_imported or any((file, line) in self.imported for line in lines)


def _distance(file: str, test: str) -> int:
    """Return 0 for a test in the file of the module, 1 in the folder of its room, 2 elsewhere."""
    module, tests = Path(file), Path(test.partition("::")[0])
    if module.stem in tests.stem:
        return 0
    return 1 if tests.parent.name == module.parent.name else 2


def _import_paths(folder: Path) -> list[str]:
    """Return where the processes that tests start import from: the copy, not the checkout."""
    settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    paths = settings["tool"]["pytest"]["ini_options"]["pythonpath"]
    return [str(folder / path) for path in (*paths, _STARTED)]


class _Server:
    """A process that answers requests in forks of itself."""

    def __init__(self, command: Sequence[str], folder: Path, environ: Mapping[str, str]):
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._log = folder / "server.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                cwd=folder,
                env={
                    **os.environ,
                    **environ,
                    "PYTHONPATH": os.pathsep.join(_import_paths(folder)),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "MUTATE_REQUESTS": str(requests),
                    "MUTATE_ANSWERS": str(answers),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(requests, answers),
            )
        os.close(requests)
        os.close(answers)
        self._incoming = os.fdopen(self._answers, "rb")
        self.hello = self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        os.write(self._requests, json.dumps(request).encode() + b"\n")
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._incoming.readline()
        if not line:
            log = self._log.read_text(encoding="utf-8", errors="replace")
            raise SystemExit(f"The tests cannot be run without any edit:\n{log[-3000:]}")
        return json.loads(line)

    def close(self) -> None:
        os.close(self._requests)
        self._incoming.close()
        self._process.wait()


class Copy:
    """A copy of the checkout, whose tests are collected once."""

    def __init__(self, root: Path, folder: Path, code: Iterable[str], tests: Sequence[str]):
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
        started = folder / _STARTED
        started.mkdir()
        (started / "sitecustomize.py").write_text(STARTED, encoding="utf-8")
        common = os.path.commonpath([str(folder / name) for name in code])
        self._server = _Server(
            [*_PYTEST, "-p", "tools.mutate.collected", "-m", "not browser", *tests],
            folder,
            {"MUTATE_FOLDER": common, "MUTATE_STARTED": str(started)},
        )
        self._fresh: _Server | None = None
        self._sound: dict[tuple[str, ...], bool] = {}
        self.tests: list[str] = self._server.hello["tests"]

    def close(self) -> None:
        """End its processes."""
        self._server.close()
        if self._fresh:
            self._fresh.close()

    def trace(self, tests: Sequence[str]) -> dict[str, Any]:
        """Run tests of one file and return which lines each executes, its seconds and those that failed.

        Each has a process of its own: what one has left in a cache, or in a fixture of the file, would
        be executed by that one alone.
        """
        seconds: dict[str, float] = {}
        failed: list[str] = []
        lines: dict[tuple[str, int], list[str]] = defaultdict(list)
        for test in tests:
            answer = self._server.ask(tests=[test], noting=True, limit=_TRACE_SECONDS)
            if "seconds" not in answer:
                how = "takes too long" if "timeout" in answer else f"ends the process ({answer['died']})"
                raise SystemExit(f"{test} {how} without any edit.")
            seconds |= answer["seconds"]
            failed += answer["failed"]
            for file, line in answer["lines"]:
                lines[os.path.relpath(file, self.folder), line].append(test)
        return {"seconds": seconds, "failed": failed, "lines": [[*place, by] for place, by in lines.items()]}

    def imported(self) -> frozenset[tuple[str, int]]:
        """Return the lines that are executed while the tests are imported."""
        return frozenset(
            (os.path.relpath(file, self.folder), line) for file, line in self._server.hello["imported"]
        )

    def is_noticed(
        self, file: str, edit: Edit, tests: TestsByLine, last_line: int, most_seconds: float
    ) -> bool | None:
        """Return whether a test fails with the edit; None if no test executes it.

        What is computed on import shows in a fresh process; `Unsound` if its tests fail there without it.
        """
        chosen = tests.of(file, edit, last_line, most_seconds)
        if not chosen:
            return None
        limit = LEAST_SECONDS + 3 * sum(tests.seconds[test] for test in chosen)
        path = self.folder / file
        original, times = path.read_bytes(), path.stat()
        try:
            path.write_bytes(edit.apply(original))
            is_settled = False
            if not edit.is_imported:
                answer = self._server.ask(tests=chosen, file=str(path), line=edit.line, limit=limit)
                is_settled = answer.get("swapped", True)
                if is_settled and answer.get("failed", True):
                    return True
            if is_settled and not tests.is_imported(file, edit, last_line):
                return False
            answer = self._ask_fresh(chosen, limit)
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if not answer.get("failed", True):
            return False
        if not self._is_sound(chosen, limit):
            raise Unsound(chosen[0])
        return True

    def _ask_fresh(self, tests: Sequence[str], limit: float) -> dict[str, Any]:
        if self._fresh is None:
            modules = self.folder / "modules.txt"
            modules.write_text("\n".join(self._server.hello["modules"]), encoding="utf-8")
            self._fresh = _Server(["-m", "tools.mutate.fresh"], self.folder, {"MUTATE_MODULES": str(modules)})
        return self._fresh.ask(tests=tests, limit=limit + 15)

    def _is_sound(self, tests: Sequence[str], limit: float) -> bool:
        """Return whether the tests pass in a fresh process without any edit."""
        key = tuple(tests)
        if key not in self._sound:
            self._sound[key] = not self._ask_fresh(tests, limit).get("failed", True)
        return self._sound[key]


def tests_by_line(
    copies: Sequence[Copy], traced: Iterable[Mapping[str, Any]], apart: Mapping[str, str]
) -> TestsByLine:
    """Put together what the tests execute. A few that fail although nothing is edited are left out."""
    seconds: dict[str, float] = {}
    at: dict[tuple[str, int], frozenset[str]] = defaultdict(frozenset)
    failed: set[str] = set()
    for part in traced:
        seconds |= part["seconds"]
        failed |= set(part["failed"])
        for file, line, names in part["lines"]:
            at[file, line] |= frozenset(names)
    if not seconds or len(failed) > _MOST_FAILED * len(copies[0].tests):
        shown = [*sorted(failed)[:_MOST_SHOWN], *(["..."] if len(failed) > _MOST_SHOWN else [])]
        raise SystemExit(f"The tests fail without any edit: {', '.join(shown) or 'there is none'}")
    if failed:
        print(f"Left out, because they fail without any edit: {', '.join(sorted(failed))}", flush=True)
    return TestsByLine(
        seconds,
        {place: names - failed for place, names in at.items()},
        copies[0].imported(),
        {
            module: frozenset(test for test in seconds if test.startswith(tests)) - failed
            for module, tests in apart.items()
        },
    )
