"""Where runs come from, in the commands: inspected, searched and compared."""

from __future__ import annotations

import numpy as np
import pytest

import smdebug
from smdebug.files.names import ORIGIN


def trained(place, loss=1.0, **options):
    choice = {"save_config": smdebug.SaveConfig(save_interval=1)}
    with smdebug.Hook(str(place), **choice, **options) as hook:
        for step in range(12):
            with hook.step():
                hook.record("loss", np.float32(loss / (1 + step)))


@pytest.fixture
def runs(tmp_path):
    trained(tmp_path / "a", config={"lr": 0.1, "layers": 2, "optimizer": {"name": "adam"}})
    trained(tmp_path / "b", config={"lr": 0.001, "layers": 2, "api_key": "k"}, tags=["night"])
    trained(tmp_path / "team" / "c", np.nan, config={"lr": 3, "layers": 2})
    return tmp_path


def names(answer):
    return [run["name"] for run in answer.json]


def test_runs_of_a_folder_are_listed_with_what_differs(ask, runs):
    answer = ask("runs", runs)
    assert answer.code == 0
    head, *lines = answer.out.splitlines()
    assert head.split() == [
        "run",
        "state",
        "step",
        "loss",
        "saved",
        "lr",
        "optimizer.name",
        "api_key",
    ]
    assert lines[0].split()[0] == "a"
    assert lines[-1] == "3 runs"


def test_runs_are_found_by_their_hyperparameters(ask, runs):
    assert names(ask("runs", runs, "--where", "lr<1e-2", "--json")) == ["b"]
    assert names(ask("runs", runs, "--where", "lr>1e-2", "--where", "optimizer.name=adam", "--json")) == ["a"]
    assert names(ask("runs", runs, "--where", "tags=night", "--json")) == ["b"]
    assert ask("runs", runs, "--where", "lr=7").out == "No run matches.\n"


def test_failing_runs_are_found(ask, runs):
    answer = ask("runs", runs, "--failing")
    assert answer.code == 1
    assert "team/c" in answer.out
    assert "\na " not in answer.out
    assert ask("runs", runs, "--where", "lr<1", "--failing").code == 0


def test_what_cannot_be_asked_is_a_usage_error(ask, runs):
    assert ask("runs", "--failing").code == 2
    assert ask("runs", runs, "--watched").code == 2
    assert "Did you mean layers?" in ask("runs", runs, "--where", "layer=2").err
    missing = ask("runs", runs / "nothing")
    assert (missing.code, (runs / "nothing").exists()) == (3, False)


def test_an_unreadable_run_is_named_and_the_others_are_listed(ask, runs):
    (runs / "a" / ORIGIN).write_text("{")
    (runs / "b" / "collections" / "000000000" / "worker_0_collections.json").write_text("{")
    answer = ask("runs", runs)
    assert answer.code == 0
    assert "a: " in answer.out
    assert ORIGIN in answer.out
    assert "b: " in answer.out
    assert "team/c" in answer.out


def test_inspect_shows_the_origin_and_no_secret(ask, runs):
    answer = ask("inspect", runs / "b")
    assert "versions  Python 3." in answer.out
    assert "tags      night" in answer.out
    assert "0.001" in answer.out
    assert "api_key  ***" in answer.out
    assert ask("inspect", runs / "b", "--json").json["origin"]["config"]["lr"] == 0.001
    (runs / "b" / ORIGIN).write_text("[]")
    assert "damaged: origin.json: its JSON is not an object" in ask("inspect", runs / "b").out


def test_a_name_cannot_write_to_the_terminal(ask, tmp_path):
    trained(tmp_path / "run", config={"a\x1b[2J": "b\x1b]0;"}, note="\x1b[31m", tags=["\x1b[1m"])
    for words in (("inspect", tmp_path / "run"), ("runs", tmp_path)):
        assert "\x1b" not in ask(*words).out


def test_compare_begins_with_the_configuration(ask, runs):
    answer = ask("compare", runs / "a", runs / "b")
    assert answer.code == 0  # the values are the same
    lines = answer.out.splitlines()
    assert lines[0] == "Configuration"
    assert lines[2].split() == ["lr", "0.1", "0.001"]
    assert not [line for line in lines if line.startswith("layers")]
    config = ask("compare", runs / "a", runs / "b", "--json").json["config"]
    assert config[0] == {"name": "lr", "first": 0.1, "other": 0.001}
    assert config[1] == {"name": "optimizer.name", "first": "adam", "other": None}


def test_a_run_alone_is_evaluated_in_short(ask, runs):
    answer = ask(runs / "team" / "c")
    assert answer.code == 1
    assert answer.out.startswith("✗ ")
    assert "    step 0: " not in answer.out  # as in the long form
    good = ask(runs / "a")
    assert (good.code, "✗" in good.out) == (0, False)


def test_a_word_that_is_neither_run_nor_command_is_a_usage_error(ask, runs, monkeypatch):
    monkeypatch.chdir(runs)
    assert ask("a").code in (0, 1)
    assert "There is no command 'inspct'" in ask("inspct").err
    assert "There is no run at" in ask("./nothing").err
