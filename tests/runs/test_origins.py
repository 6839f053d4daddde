"""The origins of runs in words."""

from __future__ import annotations

from smdebug.files.notes.origin import ImportedFrom, Origin
from smdebug.runs.origins import differing, imported_in_words, in_words


def test_an_imported_run_names_its_log_its_losses_and_what_was_left_out():
    series = {"train/loss": "loss (train)", "val/loss": "loss (eval)", "acc": "acc (train)"}
    imported = ImportedFrom("tensorboard", "/logs/a", "step", series, {"images": 3000})
    assert imported_in_words(Origin(imported=imported)) == (
        "tensorboard /logs/a: loss from train/loss, validation loss from val/loss, 1 other series; "
        "not imported: 3,000 × images"
    )
    assert in_words(Origin(imported=imported))[0][0] == "imported"


def test_a_log_without_a_loss_says_so_and_what_its_steps_are():
    origin = Origin(imported=ImportedFrom("csv", "a.csv", "epoch", {"acc": "acc (train)"}))
    assert (
        imported_in_words(origin) == "csv a.csv: no loss of the training, 1 other series; a step is an epoch"
    )
    assert imported_in_words(Origin()) == ""


def test_what_differs_comes_before_what_only_some_runs_give():
    runs = [
        {"model": "a", "name": "x", "lr": 0.1, "flag": True, "same": 1},
        {"name": "x", "lr": 0.2, "flag": 1, "same": 1},
        {"lr": 0.1, "flag": True, "same": 1},
    ]
    assert differing(runs) == ["lr", "flag", "model", "name"]
    assert differing(runs[:1]) == differing([]) == []
