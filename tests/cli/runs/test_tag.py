"""`smdebug tag`: tags, notes, groups and pins of runs, from the terminal."""

from __future__ import annotations

import json

import pytest

import smdebug
from smdebug.trials import create_trial


@pytest.fixture
def runs(tmp_path):
    for name in ("a", "b"):
        place = str(tmp_path / name)
        with smdebug.Hook(place, config={"lr": 0.1}, tags=["draft"], note="first") as hook, hook.step():
            hook.record("loss", 1.0)
    return tmp_path


def test_tags_are_added_and_removed_on_all_runs_and_the_rest_stays(ask, runs):
    options = ("--add", "paper", "--add", "draft", "--remove", "old", "--json")
    answer = ask("tag", runs / "a", runs / "b", *options)
    assert answer.code == 0
    assert [each["tags"] for each in answer.json] == [["draft", "paper"]] * 2
    assert [each["note"] for each in answer.json] == ["first"] * 2
    assert ask("tag", runs / "a", "--remove", "draft", "--json").json[0]["tags"] == ["paper"]
    assert json.loads((runs / "a/origin.json").read_text())["tags"] == ["draft"]


def test_a_group_a_note_and_a_pin_are_searched_like_what_the_training_gave(ask, runs):
    ask("tag", runs / "a", "--group", "learning  rates", "--note", "the one to beat", "--pin")
    for condition in ("group=learning rates", "note=the one to beat", "pinned=true"):
        assert [run["name"] for run in ask("runs", runs, "--where", condition, "--json").json] == ["a"]
    assert "learning rates" in ask("runs", runs, "--columns", "group").out
    assert create_trial(str(runs / "a")).origin.config == {"lr": 0.1, "group": "learning rates"}
    (undone,) = ask("tag", runs / "a", "--group", "", "--note", "", "--unpin", "--json").json
    assert (undone["group"], undone["note"], undone["pinned"]) == (None, "", False)


def test_without_an_option_it_is_shown_and_nothing_is_written(ask, runs):
    answer = ask("tag", runs / "a")
    assert answer.out.splitlines()[1:] == ["  tags   draft", "  group  –", "  note   first"]
    assert not (runs / "a/annotations.json").exists()


def test_secrets_and_control_characters_are_left_out(ask, runs):
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
    answer = ask("tag", runs / "a", "--note", f"see {secret}", "--group", f"\x1b[31m red {secret}")
    assert secret not in answer.out + (runs / "a/annotations.json").read_text()
    assert "\x1b[31m" not in answer.out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--add", "a,b"], 2, "comma"),
        (["--note", "x" * 3000], 2, "at most 2,000"),
        (["--group", "x" * 200], 2, "group must be a text of at most 100"),
    ],
)
def test_what_cannot_be_kept_is_refused(ask, runs, options, code, message):
    answer = ask("tag", runs / "a", *options)
    assert answer.code == code
    assert message in answer.err
    assert not (runs / "a/annotations.json").exists()


def test_a_place_without_a_run_gets_no_file(ask, runs):
    assert ask("tag", runs / "nowhere", "--add", "a").code == 3
    assert not (runs / "nowhere").exists()
