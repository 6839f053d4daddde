"""`smdebug import`: logs of other tools, as runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdebug.trials import create_trial
from tests.importing.logs import (
    WandbFile,
    falling,
    write_csv,
    write_events,
    write_lines,
    write_mlflow_run,
)

ROWS = list(enumerate(falling(30)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_csv(
        tmp_path / "keras.csv", ["epoch", "loss", "val_loss"], [(at, loss, loss) for at, loss in ROWS]
    )


def test_a_log_becomes_a_run_whose_verdict_names_it(ask, log, tmp_path):
    answer = ask("import", log, tmp_path / "run")
    assert answer.code == 0
    assert "60 values of 2 series at 30 steps" in answer.out
    assert "val_loss is loss (eval)" in answer.out
    verdict = ask(tmp_path / "run")
    assert verdict.code == 0
    assert "Imported from csv" in " ".join(verdict.out.split())
    assert "validation loss from val_loss" in " ".join(verdict.out.split())
    assert "imported" in ask("inspect", tmp_path / "run").out
    page = tmp_path / "report.html"
    ask("report", tmp_path / "run", "-o", page)
    assert "loss from loss, validation loss from val_loss" in page.read_text(encoding="utf-8")


def test_the_folder_is_named_after_the_log_by_default(ask, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ask("import", log).code == 0
    assert len(create_trial("imported/keras").steps()) == 30


def test_a_run_that_exists_is_replaced_only_with_overwrite(ask, log, tmp_path):
    ask("import", log, tmp_path / "run")
    refused = ask("import", log, tmp_path / "run")
    assert (refused.code, refused.out) == (2, "")
    assert "--overwrite" in refused.err
    assert ask("import", log, tmp_path / "run", "--overwrite").code == 0


def test_each_run_of_a_folder_gets_a_folder_and_one_that_fails_stops_no_other(ask, tmp_path):
    for run, values in (("a", ROWS), ("b", []), ("c", ROWS)):
        write_mlflow_run(tmp_path / "mlruns/0", run, {"loss": values})
    answer = ask("import", tmp_path / "mlruns", tmp_path / "runs")
    assert answer.code == 3
    assert "✗ b:" in answer.out
    assert "holds no scalars" in answer.out
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a", "c"]
    payload = ask("import", tmp_path / "mlruns", tmp_path / "runs", "--overwrite", "--json").json
    assert [Path(run["run"]).name for run in payload["imported"]] == ["a", "c"]
    assert [run["name"] for run in payload["failed"]] == ["b"]


def test_a_format_is_recognised_and_can_be_named(ask, tmp_path):
    folder = tmp_path / "log"
    write_events(folder / "events.out.tfevents.1", [("train/loss", at, loss) for at, loss in ROWS])
    write_csv(folder / "metrics.csv", ["step", "train_loss"], ROWS)
    recognised = ask("import", folder, tmp_path / "a", "--json").json
    named = ask("import", folder, tmp_path / "b", "--from", "csv", "--json").json
    assert recognised["imported"][0]["format"] == "tensorboard"
    assert named["imported"][0]["format"] == "csv"


def test_what_was_not_imported_is_said(ask, tmp_path):
    file = WandbFile()
    for at, loss in ROWS:
        file.history(_step=at, loss=loss, text="x")
    del file.content[-5:]
    answer = ask("import", file.write(tmp_path / "log"), tmp_path / "run")
    assert answer.code == 0
    assert "not imported: 29 × values of text that are not numbers" in answer.out
    assert "not imported: 1 × the end of the file, which is cut off" in answer.out
    assert "not imported: 29 ×" in " ".join(ask(tmp_path / "run").out.split())


@pytest.mark.parametrize(
    ("name", "content", "code", "says"),
    [
        ("nowhere", None, 2, "There is no file or folder"),
        ("notes.txt", b"hello", 2, "without a known log"),
        ("empty.csv", b"", 2, "holds no scalars"),
        ("empty.jsonl", b"\n", 2, "holds no scalars"),
        ("trainer_state.json", b"{", 3, "JSON cannot be read"),
        ("x.wandb", b"", 3, "not a file of W&B"),
    ],
)
def test_what_is_no_log_is_one_sentence(ask, tmp_path, name, content, code, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    answer = ask("import", tmp_path / name, tmp_path / "run")
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").iterdir())


def test_control_characters_of_a_name_do_not_reach_the_terminal(ask, tmp_path):
    log = write_lines(
        tmp_path / "log.jsonl", [{"step": 0, "loss": 1.0, "\x1b[31mred": 2.0, "a\x1b]0;x": "y"}]
    )
    for answer in (
        ask("import", log, tmp_path / "run"),
        ask(tmp_path / "run"),
        ask("inspect", tmp_path / "run"),
    ):
        assert "\x1b" not in answer.out
