"""A training marks its checkpoints, and what is found later names the last one before the problem began."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.diagnosis import as_text
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.names import CHECKPOINTS
from smdebug.files.notes.checkpoints import parse_checkpoints
from smdebug.runs.verifying import verify
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.checkpoint_writing import RunCheckpoints
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial


def train(place, losses, marked=(), **options):
    """Train with these losses; save a checkpoint after each step that is marked."""
    with smdebug.Hook(str(place), **options) as hook:
        for step, loss in enumerate(losses):
            with hook.step():
                hook.record("loss", np.float32(loss))
            if step in marked:
                hook.mark_checkpoint(f"/out/checkpoint-{step}")
    return hook


def marked_in(place):
    return [(item.step, item.path) for item in create_trial(str(place)).checkpoints()]


def test_a_checkpoint_belongs_to_the_step_that_ran_last(tmp_path):
    train(tmp_path / "run", [1.0] * 6, marked=(1, 4))
    assert marked_in(tmp_path / "run") == [(1, "/out/checkpoint-1"), (4, "/out/checkpoint-4")]


def test_a_problem_names_the_last_checkpoint_before_it_began(tmp_path):
    train(tmp_path / "run", [1.0, 0.9, 0.8, 0.7, np.nan, np.nan], marked=range(6))
    (issue,) = smdebug.diagnose(str(tmp_path / "run")).issues
    assert issue.since == 4
    assert (issue.resume_from.step, issue.resume_from.path) == (3, "/out/checkpoint-3")
    resume = (
        "Resume    /out/checkpoint-3, saved after step 3, is the last checkpoint before the problem began."
    )
    assert resume in [line.strip() for line in as_text(issue)]
    assert type(issue).from_dict(json.loads(json.dumps(issue.to_dict()))) == issue


def test_a_problem_from_the_beginning_on_has_the_weights_before_the_first_step_or_none(tmp_path):
    train(tmp_path / "none", [np.nan] * 4, marked=range(4))
    (issue,) = smdebug.diagnose(str(tmp_path / "none")).issues
    assert issue.resume_from is None
    assert not any("Resume" in line for line in as_text(issue))
    with smdebug.Hook(str(tmp_path / "initial")) as hook:
        hook.mark_checkpoint("/out/initial")
        for _ in range(4):
            with hook.step():
                hook.record("loss", np.float32(np.nan))
    (issue,) = smdebug.diagnose(str(tmp_path / "initial")).issues
    assert "/out/initial, saved before the first step," in "\n".join(as_text(issue))


def test_a_step_can_be_given_and_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hook = smdebug.Hook(str(tmp_path / "run"))
    with hook.step():
        hook.record("loss", np.float32(1))
    hook.mark_checkpoint(Path("out/a.pt"), step=0)
    hook.mark_checkpoint("s3://bucket/b.pt", step=7)
    hook.close()
    assert marked_in(tmp_path / "run") == [(0, str(tmp_path / "out/a.pt")), (7, "s3://bucket/b.pt")]


def test_a_checkpoint_that_was_removed_is_not_named(tmp_path):
    hook = smdebug.Hook(str(tmp_path / "run"))
    for step in range(3):
        with hook.step():
            hook.record("loss", np.float32(1))
        file = tmp_path / f"{step}.pt"
        file.touch()
        hook.mark_checkpoint(file)
        hook.checkpoints.finish(60)
        if step:
            (tmp_path / f"{step - 1}.pt").unlink()  # trainers keep the last one alone
    hook.mark_checkpoint(tmp_path / "written-later.pt")
    hook.close()
    assert marked_in(tmp_path / "run") == [
        (2, str(tmp_path / "2.pt")),
        (2, str(tmp_path / "written-later.pt")),
    ]


def test_a_path_that_no_file_can_have_costs_the_others_nothing(tmp_path):
    hook = smdebug.Hook(str(tmp_path / "run"))
    with hook.step():
        hook.record("loss", np.float32(1))
    hook.mark_checkpoint(tmp_path / ("z" * 300))
    hook.mark_checkpoint("/out/a.pt")
    hook.close()
    assert (0, "/out/a.pt") in marked_in(tmp_path / "run")


def test_an_attempt_keeps_the_checkpoints_of_earlier_ones_as_far_as_their_steps_count(tmp_path):
    script = (
        "import sys, os, numpy as np, smdebug\n"
        "first, last, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]\n"
        "hook = smdebug.Hook('run')\n"
        "for step in range(first, last):\n"
        "    with hook.step():\n"
        "        hook.record('loss', np.float32(1))\n"
        "    hook.mark_checkpoint(f'/out/{name}-{step}')\n"
        "hook.checkpoints.finish(60)\n"
        "hook.flush()\n"
        "os._exit(1)\n"
    )
    for name in ("first", "second"):
        subprocess.run([sys.executable, "-c", script, "0", "3", name], cwd=tmp_path, check=False)
    assert marked_in(tmp_path / "run") == [(step, f"/out/second-{step}") for step in range(3)]


@pytest.mark.parametrize(
    ("attempt", "kept"),
    [
        (StartedAttempt("run", 1, resumed_at=3), [1, 2]),
        (StartedAttempt("run", 1, resumed_at=0), []),
        (StartedAttempt("run", 1), [1, 2, 3]),
        (StartedAttempt("run"), []),
    ],
)
def test_checkpoints_of_earlier_attempts_are_kept_below_the_step_at_which_one_resumes(attempt, kept):
    storage = MemoryStorage("run")

    def write(attempt, *steps):
        checkpoints = RunCheckpoints()
        checkpoints.begin(storage, attempt)
        for step in steps:
            checkpoints.mark(f"s3://bucket/{attempt.training_run}-{step}", step)
        checkpoints.finish(60)
        return [item.step for item in parse_checkpoints(storage.read(CHECKPOINTS))]

    assert write(StartedAttempt("run"), 1, 2, 3) == [1, 2, 3]
    assert write(attempt, 9) == [*kept, 9]


def test_marks_before_the_first_step_are_written_when_it_begins():
    storage, checkpoints = MemoryStorage("run"), RunCheckpoints()
    checkpoints.mark("s3://bucket/a", -1)
    checkpoints.begin(storage, StartedAttempt("run"))
    checkpoints.finish(60)
    assert [item.path for item in parse_checkpoints(storage.read(CHECKPOINTS))] == ["s3://bucket/a"]
    silent, nothing = MemoryStorage("other"), RunCheckpoints()
    nothing.begin(silent, StartedAttempt("run"))
    nothing.finish(60)
    assert not silent.exists(CHECKPOINTS)


def test_a_run_that_replaces_another_has_none_of_its_checkpoints(tmp_path):
    train(tmp_path / "run", [1.0] * 3, marked=(1,))
    with smdebug.start(tmp_path / "run", if_finished="overwrite"):
        assert not (tmp_path / "run" / CHECKPOINTS).exists()


@pytest.mark.parametrize("path", [None, 3, "", " ", b"a"])
def test_what_is_no_path_is_refused_where_it_is_given(tmp_path, path):
    with pytest.raises(SMDebugTypeError, match="A checkpoint is the path"):
        smdebug.Hook(str(tmp_path / "run"), dry_run=True).mark_checkpoint(path)


def test_a_step_that_is_none_is_refused(tmp_path):
    with pytest.raises(SMDebugValueError, match="step"):
        smdebug.Hook(str(tmp_path / "run"), dry_run=True).mark_checkpoint("a", step=-1)


def test_a_dry_run_writes_none(tmp_path):
    train(tmp_path / "run", [1.0] * 3, marked=(1,), dry_run=True)
    assert not (tmp_path / "run" / CHECKPOINTS).exists()


def test_a_damaged_list_is_named_by_verify_and_costs_no_diagnosis(tmp_path):
    train(tmp_path / "run", [1.0, 0.9, 0.8, np.nan, np.nan], marked=(1,))
    (tmp_path / "run" / CHECKPOINTS).write_bytes(b"{")
    assert CHECKPOINTS in [problem.file for problem in verify(str(tmp_path / "run")).problems]
    (issue,) = smdebug.diagnose(str(tmp_path / "run")).issues
    assert issue.resume_from is None


def test_without_a_watched_training_it_is_said_that_nothing_is_kept(tmp_path):
    script = "import smdebug\nsmdebug.mark_checkpoint('a.pt')\n"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "a.pt is not kept, because no training is watched yet" in done.stdout
