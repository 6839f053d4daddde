"""`smdebug migrate`: exit codes, output and files."""

from __future__ import annotations

import json

import pytest

SCRIPT = """from sagemaker.debugger import DebuggerHookConfig, Rule, rule_configs
from sagemaker.pytorch import PyTorch

PyTorch(
    rules=[Rule.sagemaker(rule_configs.overfit())],
    debugger_hook_config=DebuggerHookConfig(s3_output_path="s3://bucket/runs"),
)
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script that defines an estimator, in the current folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "launch.py"
    file.write_text(SCRIPT)
    return file


def test_it_ends_with_0_when_nothing_has_to_be_changed(ask, script):
    script.write_text("import smdebug.pytorch as smd\n")
    answer = ask("migrate", "launch.py")
    assert answer.code == 0
    assert "1 unchanged, 0 to change" in answer.out
    assert not script.with_name("rules.json").exists()


def test_it_ends_with_1_and_writes_the_files_when_something_has_to_be_changed(ask, script, tmp_path):
    answer = ask("migrate", "launch.py", "-o", "config")
    assert answer.code == 1
    assert "wrote config/rules.json" in answer.out
    hook = json.loads((tmp_path / "config" / "debughookconfig.json").read_text())
    assert hook["LocalPath"] == "s3://bucket/runs/launch/debug-output"
    rules = json.loads((tmp_path / "config" / "rules.json").read_text())["rules"]
    assert [rule["rule"] for rule in rules] == ["Overfit"]


@pytest.mark.parametrize("text", ["print 'Python 2'\n", "x = (\n"])
def test_it_ends_with_2_when_a_file_cannot_be_read(ask, script, text):
    script.write_text(text)
    assert ask("migrate", "launch.py").code == 2
    assert ask("migrate", "no-such-file.py").code == 2


def test_it_replaces_files_only_when_forced(ask, script, tmp_path):
    (tmp_path / "rules.json").write_text("mine")
    refused = ask("migrate", "launch.py")
    assert refused.code == 2
    assert "rules.json already exist" in refused.err
    assert (tmp_path / "rules.json").read_text() == "mine"
    assert not (tmp_path / "debughookconfig.json").exists()
    assert ask("migrate", "launch.py", "--force").code == 1
    assert (tmp_path / "rules.json").read_text() != "mine"


def test_several_estimators_have_a_folder_each(ask, script, tmp_path):
    script.with_name("other.py").write_text(SCRIPT)
    answer = ask("migrate", ".", "-o", "config", "--json")
    written = [file for c in answer.json["conversions"] for file in c["written"]]
    assert [str(file) for file in sorted(written)] == [
        f"config/{name}-line-4/{file}"
        for name in ("launch", "other")
        for file in ("debughookconfig.json", "rules.json")
    ]
    assert all((tmp_path / file).exists() for file in written)


def test_json_has_a_finding_for_each_line(ask, script):
    answer = ask("migrate", "launch.py", "--json")
    assert answer.code == 1
    assert answer.json["counts"] == {"works": 0, "changes": 4, "unclear": 0, "unreadable": 0}
    first, *_ = answer.json["findings"]
    assert (first["file"], first["line"], first["verdict"]) == ("launch.py", 1, "changes")
    assert set(first) == {"file", "cell", "line", "verdict", "code", "message", "replacement"}
