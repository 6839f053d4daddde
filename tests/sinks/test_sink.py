"""The names of sinks, as hooks and commands take them."""

from __future__ import annotations

import pytest

import smdebug
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.sinks import sink
from smdebug.sinks.sink import KINDS, SinkChoice, choice_of, choices_of
from smdebug.sinks.targets import sink_for


def test_a_target_follows_the_colon():
    assert choice_of("mlflow") == SinkChoice("mlflow")
    assert choice_of("mlflow:http://host:5000") == SinkChoice("mlflow", "http://host:5000")
    assert str(choice_of("jsonl:a.jsonl")) == "jsonl:a.jsonl"


def test_the_same_sink_counts_once_and_a_single_one_needs_no_list():
    assert choices_of(["wandb", "wandb"]) == choices_of("wandb") == (SinkChoice("wandb"),)
    assert choices_of(()) == ()


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (["mlfow"], SMDebugValueError, "Did you mean mlflow"),
        (["jsonl"], SMDebugValueError, "name it"),
        ([3], SMDebugTypeError, "not by int"),
        (3, SMDebugTypeError, "list of names"),
    ],
)
def test_what_is_no_sink_is_refused_when_the_hook_is_made(given, error, text):
    with pytest.raises(error, match=text):
        smdebug.Hook("runs/a", sinks=given)


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(sink, "find_spec", lambda name: None)
    with pytest.raises(SMDebugValueError, match=r"MLflow needs its library.*pip install .*\[mlflow\]"):
        smdebug.Hook("runs/a", sinks=["mlflow"])


def test_sinks_need_the_evaluation_beside_the_training(tmp_path):
    with pytest.raises(SMDebugValueError, match="leave out evaluate=False"):
        smdebug.Hook(str(tmp_path / "a"), sinks=[f"jsonl:{tmp_path / 'a.jsonl'}"], evaluate=False)
    with pytest.raises(SMDebugValueError, match="another process reads it"):
        smdebug.Hook("memory://a", sinks=[f"jsonl:{tmp_path / 'a.jsonl'}"])


def test_every_kind_can_be_made_without_its_library():
    made = [sink_for(SinkChoice(name, "somewhere")) for name in KINDS]
    assert len(made) == len(KINDS)
    assert all(sink.place and sink.notes == [] for sink in made)


@pytest.mark.parametrize(
    ("sink", "run_id", "words"),
    [
        ("mlflow", "", "mlflow a"),
        ("mlflow:http://host:5000", "", "mlflow a --to http://host:5000"),
        ("mlflow:http://host:5000", "7f", "mlflow a --to http://host:5000 --into 7f"),
        ("wandb:my project", "", "wandb a --to 'my project'"),
        ("jsonl:all.jsonl", "", "jsonl a"),  # an export replaces the file, which has lines of other runs
    ],
)
def test_the_command_that_sends_a_run_again_names_the_same_place(sink, run_id, words):
    assert choice_of(sink).export_command("a", run_id) == f"smdebug export {words}"
