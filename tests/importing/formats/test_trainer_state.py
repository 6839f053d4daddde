"""`trainer_state.json` of transformers."""

from __future__ import annotations

import json

import pytest

from smdebug.exceptions import DamagedFile
from smdebug.importing.finding import find_runs
from tests.importing.logs import by_name, read

HISTORY = [
    {"epoch": 0.5, "grad_norm": 1.5, "learning_rate": 5e-05, "loss": 2.0, "step": 10},
    {"epoch": 0.5, "eval_loss": 2.5, "eval_runtime": 0.1, "step": 10},
    {"epoch": 1.0, "train_loss": 1.9, "train_runtime": 3.0, "step": 20},
]


def write_state(folder, history):
    folder.mkdir(parents=True)
    state = {"log_history": history, "max_steps": 20, "num_train_epochs": 1, "best_metric": None}
    (folder / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")


def test_the_last_checkpoint_has_the_history_of_the_training(tmp_path):
    write_state(tmp_path / "out/checkpoint-9", HISTORY[:1])
    write_state(tmp_path / "out/checkpoint-20", HISTORY)
    (tmp_path / "out/checkpoint-20/args.json").write_text('{"seed": 42}', encoding="utf-8")
    (found,) = find_runs(tmp_path)
    assert (found.format, found.name) == ("trainer", "out")
    points, details = read([found])
    series = by_name(points)
    assert series["loss"] == [(10, 2.0)]
    assert series["eval_loss"] == [(10, 2.5)]
    assert series["train_loss"] == [(20, 1.9)]
    assert details.config == {"max_steps": 20, "num_train_epochs": 1, "seed": 42}


@pytest.mark.parametrize("content", ["", "[]", '{"log_history": 3}', "{" * 100_000])
def test_a_state_without_a_history_is_damage(tmp_path, content):
    (tmp_path / "trainer_state.json").write_text(content, encoding="utf-8")
    with pytest.raises(DamagedFile):
        read(find_runs(tmp_path / "trainer_state.json"))


def test_entries_of_any_type_are_left_out(tmp_path):
    write_state(tmp_path / "a", [1, None, {"step": None, "loss": 1}, {"step": 1, "loss": 1.0, "x": "y"}])
    points, details = read(find_runs(tmp_path))
    assert by_name(points) == {"loss": [(1, 1.0)]}
    assert sum(details.left_out.values()) == 4
