"""Imported runs: their series, modes, origin, and the places that are refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.importing import find_runs, import_run
from smdebug.importing.records import MOST_REASONS, MOST_SERIES
from smdebug.importing.writing import MOST_STEPS
from smdebug.mode_keys import ModeKeys
from smdebug.runs.evaluation.diagnosing import Diagnosis, diagnose
from smdebug.runs.verifying import verify
from smdebug.trials import create_trial
from tests.importing.logs import falling, write_csv, write_lines


def imported(source: Path, place: Path):
    (found,) = find_runs(source)
    return import_run(found, place)


def judged(source: Path, place: Path) -> Diagnosis:
    imported(source, place)
    return diagnose(place)


def causes(found: Diagnosis) -> set[str]:
    return {issue.cause for issue in found.issues}


def test_a_run_has_every_value_at_the_step_and_in_the_mode_of_the_log(tmp_path):
    log = write_csv(
        tmp_path / "log.csv",
        ["epoch", "loss", "val_loss", "accuracy"],
        [(0, 2.0, 2.5, 0.1), (1, 1.0, 1.5, 0.5), (2, 0.5, 1.25, 0.75)],
    )
    done = imported(log, tmp_path / "run")
    assert (done.values, done.steps) == (9, 3)
    trial = create_trial(tmp_path / "run")
    loss = trial.series("loss")
    assert loss.of(ModeKeys.TRAIN).steps.tolist() == loss.of(ModeKeys.EVAL).steps.tolist() == [0, 1, 2]
    assert loss.of(ModeKeys.TRAIN).values.tolist() == [2.0, 1.0, 0.5]
    assert loss.of(ModeKeys.EVAL).values.tolist() == [2.5, 1.5, 1.25]
    assert trial.series("accuracy").values.tolist() == [0.1, 0.5, 0.75]
    assert trial.tensor("loss").value(2) == 0.5
    assert set(trial.tensor_names(collection="losses")) == {"loss"}
    assert verify(tmp_path / "run").is_sound


def test_a_long_log_is_saved_in_groups_without_losing_a_value(tmp_path):
    rows = [
        {"step": step, "loss": value, "lr": 0.1} for step, value in enumerate(falling(4 * MOST_STEPS + 7))
    ]
    done = imported(write_lines(tmp_path / "log.jsonl", rows), tmp_path / "run")
    trial = create_trial(tmp_path / "run")
    assert len(trial.steps()) <= MOST_STEPS
    assert done.values == 2 * len(rows)
    loss = trial.series("loss")
    assert loss.steps.tolist() == list(range(len(rows)))
    assert loss.values.tolist() == [row["loss"] for row in rows]


def test_the_origin_names_the_log_and_keeps_the_configuration_without_secrets(tmp_path):
    folder = tmp_path / "out"
    write_csv(folder / "metrics.csv", ["step", "train_loss"], [(0, 2.0), (1, 1.0)])
    (folder / "hparams.yaml").write_text("lr: 0.1\napi_key: hunter22secret99\n", encoding="utf-8")
    imported(folder, tmp_path / "run")
    origin = create_trial(tmp_path / "run").origin
    assert origin.config == {"lr": 0.1, "api_key": "***"}
    assert origin.imported.format == "csv"
    assert origin.imported.source == str(folder / "metrics.csv")
    assert origin.imported.series == {"train_loss": "loss (train)"}
    assert "hunter22" not in "".join(
        path.read_text(errors="replace") for path in (tmp_path / "run").rglob("*") if path.is_file()
    )


def test_a_log_of_very_many_names_is_read_and_its_origin_can_be(tmp_path):
    row = {f"{number}{'x' * 250}": number for number in range(2100)} | {"step": 0, "train_loss": 1.0}
    texts = {f"text {number}": "x" for number in range(300)}
    done = imported(
        write_lines(tmp_path / "log.jsonl", [{"train_loss": 2.0} | row | texts]), tmp_path / "run"
    )
    assert len(done.series) == MOST_SERIES
    assert len(done.left_out) <= MOST_REASONS + 1
    imported_from = create_trial(tmp_path / "run").origin.imported
    assert imported_from.series["train_loss"] == "loss (train)"


def test_the_wall_times_of_the_log_are_those_of_the_run(tmp_path):
    rows = [{"step": step, "loss": 1.0, "timestamp": 1_763_805_600 + step} for step in range(3)]
    imported(write_lines(tmp_path / "log.jsonl", rows), tmp_path / "run")
    assert create_trial(tmp_path / "run").origin.started == "2025-11-22T10:00:00+00:00"


def test_a_place_that_holds_anything_is_refused_and_stays_as_it_is(tmp_path):
    log = write_lines(tmp_path / "log.jsonl", [{"step": 0, "loss": 1.0}])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine", encoding="utf-8")
    (found,) = find_runs(log)
    for overwrite in (False, True):
        with pytest.raises(SMDebugValueError, match="Choose another folder"):
            import_run(found, tmp_path / "run", overwrite=overwrite)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]


def test_a_run_is_replaced_only_when_asked_and_only_by_a_log_that_can_be_read(tmp_path):
    log = write_lines(tmp_path / "log.jsonl", [{"step": step, "loss": 1.0} for step in range(5)])
    imported(log, tmp_path / "run")
    (found,) = find_runs(log)
    with pytest.raises(SMDebugValueError, match="--overwrite"):
        import_run(found, tmp_path / "run")
    log.write_text("{}\n", encoding="utf-8")
    with pytest.raises(SMDebugValueError, match="holds no scalars"):
        import_run(found, tmp_path / "run", overwrite=True)
    assert len(create_trial(tmp_path / "run").steps()) == 5
    write_lines(log, [{"step": 0, "loss": 1.0}])
    import_run(found, tmp_path / "run", overwrite=True)
    assert create_trial(tmp_path / "run").steps() == [0]


def test_a_log_is_never_imported_into_the_folder_that_contains_it(tmp_path):
    """Replacing a run removes its folder `events/`, in which somebody may keep logs."""
    log = write_csv(tmp_path / "run" / "events" / "metrics.csv", ["step", "loss"], [(0, 1.0)])
    (found,) = find_runs(log)
    with pytest.raises(SMDebugValueError, match="contains it"):
        import_run(found, tmp_path / "run", overwrite=True)
    assert log.exists()


def test_a_healthy_log_gives_no_alarm(tmp_path):
    losses, validation = falling(300), falling(300, seed=1)
    rows = [
        {"step": 10 * at, "train/loss": losses[at], "train/acc": 1 - losses[at] / 3, "lr": 0.1}
        | ({"val/loss": validation[at] + 0.05} if at % 20 == 0 else {})
        for at in range(300)
    ]
    found = judged(write_lines(tmp_path / "log.jsonl", rows), tmp_path / "run")
    assert found.issues == ()
    assert {"LossSpike", "NonFiniteValues", "Generalisation", "StuckLoss"} <= set(found.passed)
    assert "LossInput" not in found.passed
    assert f"Imported from jsonl {tmp_path / 'log.jsonl'}: loss from train/loss" in str(found)


def test_a_loss_that_becomes_nan_is_found_at_its_step(tmp_path):
    rows = [
        {"step": 10 * at, "loss": math.nan if at > 60 else value} for at, value in enumerate(falling(100))
    ]
    (issue,) = judged(write_lines(tmp_path / "log.jsonl", rows), tmp_path / "run").issues
    assert "NaN at step 610" in issue.what


def test_a_spike_is_found_at_its_step(tmp_path):
    rows = [{"step": at, "loss": 90.0 if at == 1000 else value} for at, value in enumerate(falling(2000))]
    (issue,) = judged(write_lines(tmp_path / "log.jsonl", rows), tmp_path / "run").issues
    assert issue.cause == "spike"
    assert "step 1000" in issue.what


def test_a_model_that_memorises_is_found(tmp_path):
    rows = [(at, 2.3 * math.exp(-at / 8), 2.3 * math.exp(-at / 6) + 0.04 * at + 0.4) for at in range(40)]
    log = write_csv(tmp_path / "log.csv", ["epoch", "loss", "val_loss"], rows)
    assert causes(judged(log, tmp_path / "run")) == {"overfitting"}


def stuck_rows(*, first: int = 0, **further: float) -> list[dict[str, float]]:
    noise = np.random.default_rng(0).normal(0, 0.01, 300)
    return [{"step": first + 10 * at, "loss": 2.3026 + float(noise[at]), **further} for at in range(300)]


def test_a_supervised_loss_that_never_falls_is_found(tmp_path):
    log = write_lines(tmp_path / "log.jsonl", stuck_rows(accuracy=0.1))
    assert causes(judged(log, tmp_path / "run")) == {"not learning"}


@pytest.mark.parametrize(
    "rows",
    [
        stuck_rows(),  # of a reward, perhaps
        stuck_rows(accuracy=0.1, d_loss=0.7),  # two models that are trained against each other
        stuck_rows(first=50_000, accuracy=0.9),  # continued
    ],
    ids=["not supervised", "two losses", "continued"],
)
def test_a_loss_that_need_not_fall_gives_no_alarm(tmp_path, rows):
    assert judged(write_lines(tmp_path / "log.jsonl", rows), tmp_path / "run").issues == ()
