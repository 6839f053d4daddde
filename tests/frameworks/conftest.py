"""Tests of a framework run where it is installed; `make test-frameworks` reports which did, and skips none.

`SMDEBUG_TESTED_FRAMEWORKS=torch,xgboost` names those that have to be there: the run fails if a test of one
of them did not run.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: The folder of a framework's tests, and what has to be installed for them.
FRAMEWORKS = {
    "pytorch": ["torch"],
    "tensorflow": ["tensorflow", "keras"],
    "xgboost": ["xgboost"],
    "huggingface": ["transformers", "trl", "peft", "torch"],
    "lightning": ["lightning", "torch"],
    "jax": ["jax", "flax"],
    "mxnet": ["mxnet"],
    "optuna": ["optuna"],
    "ray": ["ray"],
    "loggers": ["mlflow", "wandb", "transformers", "lightning", "keras"],
}
REQUIRED = [name for name in os.environ.get("SMDEBUG_TESTED_FRAMEWORKS", "").split(",") if name]

collect_ignore = [name for name, needed in FRAMEWORKS.items() if not all(map(find_spec, needed))]
if len(collect_ignore) == len(FRAMEWORKS):
    collect_ignore += ["test_examples.py", "test_pages.py", "test_signatures.py"]
_passed: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def little_patience(monkeypatch):
    """Make the test of a hook that saved nothing fail after 30 seconds, not after half an hour."""
    monkeypatch.setenv("SMDEBUG_TRIAL_WAIT_SECONDS", "30")


def pytest_collection_modifyitems(items):
    """Frameworks warn of each other; what we do has to be free of warnings."""
    for item in items:
        if framework_of(item.path) is not None:
            item.add_marker(pytest.mark.filterwarnings("error:::smdebug"))
            item.add_marker(pytest.mark.filterwarnings("ignore"), append=False)


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        _passed[framework_of(Path(report.fspath).absolute())] += 1


def pytest_terminal_summary(terminalreporter):
    if REQUIRED:
        terminalreporter.section("frameworks")
        for name, needed in FRAMEWORKS.items():
            if name in REQUIRED or _passed[name]:
                versions = ", ".join(f"{package} {version_of(package)}" for package in needed)
                terminalreporter.line(f"{name}: {_passed[name]} tests passed, with {versions}")
            else:
                terminalreporter.line(f"{name}: NOT TESTED HERE")


def pytest_sessionfinish(session):
    silent = [name for name in REQUIRED if not _passed[name]]
    if silent and not hasattr(session.config, "workerinput"):
        print(f"\nNo test of {', '.join(silent)} has run.")
        session.exitstatus = 1


def framework_of(path: Path) -> str | None:
    """Return the framework that a test belongs to, by its folder."""
    parts = path.relative_to(HERE).parts if path.is_relative_to(HERE) else ()
    return parts[0] if parts and parts[0] in FRAMEWORKS else None


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return version(f"{package}-cpu") if package == "tensorflow" else "none"


@pytest.fixture(autouse=True)
def _no_hook_of_before(monkeypatch):
    from smdebug.saving.hooks import singleton

    monkeypatch.setattr(singleton, "_hook", None)


@pytest.fixture(autouse=True)
def _nothing_compiled_before():
    """Whatever an earlier test compiled: what is watched of a training depends on it (`has_compiled`)."""
    if (dynamo := sys.modules.get("torch._dynamo")) is not None and dynamo.utils.counters:
        dynamo.reset()
        dynamo.utils.counters.clear()
