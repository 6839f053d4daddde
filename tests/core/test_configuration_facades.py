"""The addresses under which code for the old library finds configuration and hooks."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from smdebug import core

FACADES = sorted(
    path.stem for path in Path(core.__path__[0]).glob("*.py") if path.stem != "__init__"
)


@pytest.mark.parametrize("module", FACADES)
def test_the_facade_says_whom_it_serves(module):
    found = importlib.import_module(f"smdebug.core.{module}")
    assert found.__doc__.startswith("For code written against smdebug")


def test_the_constants_have_their_old_values():
    constants = importlib.import_module("smdebug.core.config_constants")
    assert constants.CLAIM_FILENAME == "claim.smd"
    assert constants.DEFAULT_SAVED_COLLECTIONS == ["losses"]
    assert constants.DEFAULT_SAGEMAKER_METRICS_PATH == "SAGEMAKER_METRICS_DIRECTORY"


def test_importing_smdebug_loads_no_large_module():
    script = (
        "import sys, smdebug; smdebug.modes; "
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'google', 'boto3', 'json')])"
    )
    path = ":".join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": path},
    )
    assert done.stdout.strip() == "[]"


def test_smdebug_has_no_other_names():
    smdebug = importlib.import_module("smdebug")
    with pytest.raises(AttributeError, match="nothing_like_it"):
        smdebug.nothing_like_it
    assert "Hook" in dir(smdebug)


def test_the_library_can_be_switched_off(monkeypatch):
    validator = importlib.import_module("smdebug.core.config_validator").ConfigValidator("any")
    assert validator.validate_training_job()
    monkeypatch.setenv("USE_SMDEBUG", "False")
    assert not validator.validate_training_job()
    assert not validator.validate_profiler_config()
