import pytest

from tests.smdebug_default_rules.made_runs import Run


@pytest.fixture
def run(tmp_path):
    """A run of a small classifier, written step by step."""
    return Run(tmp_path / "run")
