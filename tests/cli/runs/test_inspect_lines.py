"""Runs with evaluations in `smdebug inspect` and `runs`: the losses and steps of training and validation."""

from __future__ import annotations

import json

import smdebug
from smdebug import modes
from tests.cli.processes import in_a_shell
from tests.ui.written_runs import WrittenRun


def inspected(run):
    return in_a_shell("inspect", str(run)).stdout


def evaluated_at_the_end(place):
    """Write a run of three training steps, and two of an evaluation."""
    WrittenRun(
        place,
        loss=lambda step: 4.0 - step if step < 3 else 9.0,
        mode=lambda step: modes.EVAL if step >= 3 else modes.TRAIN,
    ).write(5, end=True)


def test_the_validation_loss_is_that_after_a_training_step(tmp_path):
    evaluated_at_the_end(tmp_path / "a")
    shown = inspected(tmp_path / "a")
    assert "\nloss 2 at step 2\nvalidation loss 9 after training step 2\n" in shown


def test_a_list_counts_the_steps_of_the_training(tmp_path):
    evaluated_at_the_end(tmp_path / "a")
    WrittenRun(tmp_path / "b", loss=lambda step: 9.0, mode=lambda _: modes.EVAL).write(5, end=True)
    rows = [line.split()[:3] for line in in_a_shell("runs", str(tmp_path)).stdout.splitlines()[1:3]]
    assert rows == [["a", "ended", "2"], ["b", "ended", "4"]]
    (run,) = json.loads(in_a_shell("runs", str(tmp_path), "--where", "training_step=2", "--json").stdout)
    assert (run["name"], run["last_step"], run["training_step"]) == ("a", 4, 2)


def test_a_run_of_training_alone_has_one_loss(tmp_path):
    WrittenRun(tmp_path / "a", loss=lambda step: 4.0 - step).write(3, end=True)
    assert "\nloss 2 at step 2\n" in inspected(tmp_path / "a")


def test_a_step_behind_an_evaluation_has_its_number_among_the_training_steps(tmp_path):
    with smdebug.Hook(str(tmp_path / "a")) as hook:
        for loss, mode in ((3.0, modes.TRAIN), (9.0, modes.EVAL), (2.0, modes.TRAIN), (2.5, modes.TRAIN)):
            with hook.step(mode):
                hook.record("loss", loss)
    shown = inspected(tmp_path / "a")
    assert "\nloss 2.5 at step 3 (training step 2), lowest 2 at step 2 (training step 1)\n" in shown
