"""Environment of tests with the tools themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sinks.made import failing_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failing_run(tmp_path_factory.mktemp("saved") / "run-a")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials, no proxies, and files of tools in a folder of the test."""
    import os

    for name in os.environ:
        if name.startswith(("MLFLOW_", "WANDB_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
