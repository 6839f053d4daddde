"""Runs tests in forks of a process that has imported other packages, and nothing of the checkout."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path

from tools.mutate.forking import Answer, serve


def _run(request: Answer) -> Answer:
    import pytest

    sys.path.insert(0, "")
    # A package that was imported already may have a plugin: its assertions are rewritten no more.
    ignored = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    options = ("-q", "-x", "--no-header", "--tb=no", "-p", "no:cacheprovider", *ignored)
    code = pytest.main([*options, *request["tests"]])
    return {"failed": ["a test"] if code else []}


def main() -> None:
    """Import the packages that are named, and answer requests."""
    names = Path(os.environ["MUTATE_MODULES"]).read_text(encoding="utf-8").split()
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
    serve(_run, int(os.environ["MUTATE_REQUESTS"]), int(os.environ["MUTATE_ANSWERS"]), {})


if __name__ == "__main__":
    main()
