"""What a hook logs at the end: what was saved and what to do next, or what is missing and what to add."""

import subprocess
import sys

import numpy as np
import pytest

import smdebug
from smdebug import SaveConfig, modes
from smdebug.cli.commands import COMMANDS
from smdebug.saving.ending.last_words import Saved, closing_line, short


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def train(hook, steps=30, loss=True):
    for step in range(steps):
        with hook.step(modes.TRAIN):
            if loss:
                hook.record("loss", 1.0 / (step + 1))
            hook.record("dense/weight", np.ones(3, np.float32))


def test_one_line_says_what_was_saved_and_the_next_command(capsys):
    hook = smdebug.Hook("runs/a")
    hook.observes = True
    with hook:
        train(hook, 4000)
        hook.save_scalar("accuracy", 0.5)
    output = capsys.readouterr().out
    # 139 of the plan, and the last step, which holds the losses since
    assert "Saved 140 of 4,000 steps, 3 tensors, " in output
    assert output.rstrip().endswith("KB to runs/a. Next: smdebug evaluate runs/a")
    assert "evaluate" in COMMANDS


def test_evaluations_are_told_from_the_steps_of_the_training(capsys):
    with smdebug.Hook("run") as hook:
        train(hook, 20)
        for _ in range(5):
            with hook.step(modes.EVAL):
                hook.record("loss", 1.0)
    assert " of 25 steps (20 of training), " in capsys.readouterr().out


def test_values_that_come_late_make_no_step_of_their_own(capsys):
    with smdebug.Hook("run", save_config=SaveConfig(save_interval=1)) as hook:
        train(hook, 2)
        hook.flush()
        hook.save_scalar("accuracy", 0.5)
        hook.flush()
    assert "Saved 2 of 2 steps, 2 tensors" in capsys.readouterr().out


def test_the_bytes_are_those_of_the_files(tmp_path, capsys):
    with smdebug.Hook("run", save_config=SaveConfig(save_interval=1)) as hook:
        train(hook, 3)
    files = [*(tmp_path / "run/events").rglob("*.*"), *(tmp_path / "run/index").rglob("*.*")]
    size = sum(file.stat().st_size for file in files)
    assert f"Saved 3 of 3 steps, 1 tensor, {size / 1000:.3g} KB to run." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (999, "999 B"), (1_254_000, "1.25 MB"), (4e12, "4 TB")],
)
def test_sizes_are_readable(size, shown):
    assert f", {shown} to s3://b/run." in closing_line(Saved("s3://b/run", 9, 1, 2, size))


def test_a_place_with_a_space_can_be_pasted(tmp_path):
    line = closing_line(Saved(str(tmp_path / "my run"), 9, 1, 1, 10))
    assert line.endswith("Next: smdebug evaluate 'my run'")
    assert short("/elsewhere/run") == "/elsewhere/run"


def test_a_run_of_which_nothing_was_saved_says_so_and_what_to_change(capsys):
    with smdebug.Hook("run", include_collections=["weights"]) as hook:
        for _ in range(20):
            with hook.step():
                hook.record("kernel", np.ones(3))
    output = capsys.readouterr().out
    assert "Nothing was saved to run: in 20 steps no tensor of the collections" in output
    assert "weights" in output
    assert "Next:" not in output


def test_a_hook_without_a_step_says_how_steps_begin(capsys):
    smdebug.Hook("run").close()
    output = capsys.readouterr().out
    assert "Nothing was saved to run, because no step began" in output
    assert "with hook.step(modes.TRAIN):" in output


def test_a_hook_that_is_never_closed_says_so_when_the_process_ends():
    script = "import smdebug; hook = smdebug.Hook('run')"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.count("because no step began") == 1


def test_a_loss_that_was_never_seen_is_missed_once(capsys):
    hook = smdebug.Hook("run")
    hook.observes = True
    with hook:
        train(hook, 12, loss=False)
    output = capsys.readouterr().out
    assert output.count("No loss was seen in 12 steps") == 1
    assert 'hook.record("loss", loss)' in output
    assert "Saved 11 of 12 steps" in output


def test_other_workers_say_nothing(capsys):
    hooks = [smdebug.Hook("run", worker=rank, num_workers=2, run_id="r") for rank in range(2)]
    for hook in hooks:
        hook.observes = True
        train(hook, 3)
    for hook in reversed(hooks):
        hook.close()
    assert capsys.readouterr().out.count("Next: smdebug evaluate") == 1


def test_under_the_default_plan_nothing_recorded_is_reported_with_what_to_record(capsys):
    with smdebug.Hook("run") as hook:
        for _ in range(3):
            with hook.step(modes.TRAIN):
                pass
    output = capsys.readouterr().out
    assert "in 3 steps no number and no tensor was recorded" in output
    assert 'hook.record("loss", loss)' in output
    assert "collections" not in output


def test_predictions_alone_have_no_loss_to_miss(capsys):
    with smdebug.Hook("run") as hook, hook.step(modes.PREDICT):
        hook.record("predictions", np.ones(3))
    assert "No loss" not in capsys.readouterr().out


@pytest.mark.parametrize("chosen", [{}, {"include_collections": ["gradients"]}])
def test_a_rule_that_does_not_exist_draws_one_warning_and_ends_nothing(capsys, chosen):
    with smdebug.Hook("run", rules=["VanishingGradiant", "MyOwnRule"], **chosen) as hook:
        train(hook, 3)
    output = capsys.readouterr().out
    assert output.count("There is no rule VanishingGradiant. Did you mean VanishingGradient?") == 1
    assert "MyOwnRule" not in output
    assert "Saved 3 of 3 steps" in output or "gradients" in output
