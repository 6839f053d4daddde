"""A plugin of pytest that collects the tests of a room once, and runs some of them whenever it is asked.

Each request runs in a fork, so that no test is imported twice and none sees what another has left.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tools.mutate.forking import Answer, serve
from tools.mutate.lines import Lines
from tools.mutate.swapping import swap

_lines = Lines(os.environ["MUTATE_FOLDER"])
_lines.begin()


class _Failures:
    def __init__(self) -> None:
        self.found: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.found.append(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Answer requests in place of running the tests."""
    imported = sorted(_lines.end())
    items = {item.nodeid: item for item in session.items}
    failures = _Failures()
    session.config.pluginmanager.register(failures)

    def run(names: Sequence[str]) -> Answer:
        chosen = [items[name] for name in names]
        seconds: dict[str, float] = {}
        for item, after in zip(chosen, [*chosen[1:], None], strict=True):
            begun = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            seconds[item.nodeid] = time.monotonic() - begun
            if failures.found:
                break
        return {"seconds": seconds, "failed": sorted(set(failures.found))}

    def answer(request: Answer) -> Answer:
        if request.get("file") and not swap(Path(request["file"]), request["line"]):
            return {"swapped": False}
        if not request.get("noting"):
            return run(request["tests"])
        _lines.begin_test(Path(tempfile.mkdtemp()) / "lines", Path(os.environ["MUTATE_STARTED"]))
        done = run(request["tests"])
        return {**done, "lines": sorted(_lines.end())}

    hello = {"tests": list(items), "imported": imported, "modules": _others()}
    serve(answer, int(os.environ["MUTATE_REQUESTS"]), int(os.environ["MUTATE_ANSWERS"]), hello)
    return True


def _others() -> list[str]:
    """Return the loaded modules that are neither of the checkout nor of pytest and its plugins."""
    plugins = {
        (file.parts[0] if len(file.parts) > 1 else file.stem)
        for distribution in distributions()
        if any(entry.group == "pytest11" for entry in distribution.entry_points)
        for file in distribution.files or ()
    }
    own = ("pytest", "_pytest", "pluggy", "execnet", "__m", *sorted(plugins))
    here = str(Path.cwd())
    found = []
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and not file.startswith(here) and not name.startswith(own):
            found.append(name)
    return found
