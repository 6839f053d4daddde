"""The command that installs an extra, wherever the library was installed from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smdebug import extras
from smdebug.exceptions import FrameworkMissing


class Installed:
    """The metadata of an installed package."""

    def __init__(self, noted):
        self._noted = noted

    def read_text(self, name):
        return self._noted if name == "direct_url.json" else None


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        ({"url": "file:///a%20b/code", "dir_info": {"editable": True}}, "pip install -e '/a b/code[ui]'"),
        ({"url": "file:///code", "dir_info": {}}, "pip install '/code[ui]'"),
        (
            {"url": "file:///x/smdebug.whl", "archive_info": {}},
            "pip install 'smdebug-serverless[ui] @ file:///x/smdebug.whl'",
        ),
        (
            {"url": "https://host/smdebug", "vcs_info": {"vcs": "git", "commit_id": "1f"}},
            "pip install 'smdebug-serverless[ui] @ git+https://host/smdebug@1f'",
        ),
        ({}, None),
        ([], None),
        ("{", "pip install 'smdebug-serverless[ui]'"),
    ],
)
def test_an_extra_is_installed_from_where_the_library_is_from(noted, command, monkeypatch):
    text = noted if isinstance(noted, str) else json.dumps(noted)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Installed(text))
    if command is None:  # these tests run in a checkout
        command = f"pip install -e '{Path(extras.__file__).resolve().parents[4]}[ui]'"
    assert extras.install_command("ui") == command


def test_without_any_note_and_outside_of_a_checkout_it_is_the_index(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Installed(None))
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "a/b/c/d/smdebug/extras.py"))
    assert extras.install_command("ui") == "pip install 'smdebug-serverless[ui]'"


def test_what_lacks_a_framework_says_how_to_install_it():
    assert extras.install_command("torch") in str(FrameworkMissing("PyTorch", "torch"))
