"""`smdebug inspect` and `smdebug tensor`: over folders and buckets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.files.names import event_key, index_key
from smdebug.trials import create_trial
from tests.cli.conftest import failing_run, flip_a_bit
from tests.rules.made_runs import made_run

GOLDEN = Path(__file__).parents[2] / "golden" / "runs"


def test_a_run_is_reported_at_a_glance(ask, failing):
    answer = ask("inspect", failing)
    assert answer.code == 0
    assert "ended, 1 worker, 10 steps, 3 tensors" in answer.out
    assert "TRAIN" in answer.out
    assert "█▇" in answer.out  # the course of the loss
    payload = ask("inspect", failing, "--json").json
    assert payload["steps"] == [{"mode": "TRAIN", "count": 10, "first": 0, "last": 90, "interval": 10}]
    (weight,) = [tensor for tensor in payload["tensors"] if tensor["name"] == "fc.weight"]
    assert (weight["steps"], weight["last_step"], weight["latest"]["shape"]) == (10, 90, [2, 3])
    assert weight["latest"]["max"] == pytest.approx(91.0)
    assert payload["collections"]["gradients"] == 1
    assert payload["bytes"] == sum(
        (failing / event_key(step, "worker_0")).stat().st_size for step in range(0, 100, 10)
    )


def test_a_run_in_a_bucket_is_reported_as_one_in_a_folder(ask, failing, bucket, tmp_path):
    failing_run(f"s3://{bucket}/runs/failing")
    far, near = (
        ask("inspect", f"s3://{bucket}/runs/failing", "--json").json,
        ask("inspect", failing, "--json").json,
    )
    for changing in ("path", "first_saved", "last_saved", "seconds_per_step", "attempts"):
        far.pop(changing), near.pop(changing)
    assert far == near
    assert ask("verify", f"s3://{bucket}/runs/failing").code == 0
    page = tmp_path / "page.html"
    assert ask("report", f"s3://{bucket}/runs/failing", "--no-rules", "-o", page).code == 0
    assert f"s3://{bucket}/runs/failing" in page.read_text(encoding="utf-8")
    assert ask("evaluate", f"s3://{bucket}/runs/failing", "--rule", "VanishingGradient", "-j", "1").code == 1


@pytest.mark.parametrize("run", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_runs_of_the_old_library_are_read_and_sound(ask, run):
    payload = ask("inspect", GOLDEN / run, "--json").json
    trial = create_trial(str(GOLDEN / run))
    assert [tensor["name"] for tensor in payload["tensors"]] == trial.tensor_names()
    assert sum(step["count"] for step in payload["steps"]) == len(trial.steps())
    answer = ask("verify", GOLDEN / run)
    assert answer.code == 0
    assert "the old library wrote no checksum" in answer.out


def test_a_path_to_a_file_is_an_error(ask, failing):
    file = failing / index_key(20, "worker_0")
    for words in (("inspect",), ("verify",), ("tensor", "loss"), ("evaluate", "--rule", "all")):
        answer = ask(words[0], file, *words[1:])
        assert (answer.code, "it is a file." in answer.err) == (3, True)
        assert "A run is the folder" in answer.err


def test_the_error_for_a_place_without_a_run_lists_its_content(ask, failing, tmp_path):
    answer = ask("inspect", tmp_path)
    assert answer.code == 3
    assert "but there are runs below it: failing" in answer.err
    assert answer.err.count("\n") == 2  # an error, a hint, and no trace
    assert ask("inspect", tmp_path / "nothing").code == 3
    payload = json.loads(ask("inspect", tmp_path / "nothing", "--json").err)
    assert (payload["exit_code"], "does not exist" in payload["error"]) == (3, True)


def test_a_tensor_is_reported_over_its_steps_and_at_one(ask, failing):
    payload = ask("tensor", failing, "gradient/fc", "--json").json
    assert [step["step"] for step in payload["steps"]] == list(range(0, 100, 10))
    assert payload["steps"][-1]["abs_mean"] == pytest.approx(1e-9)
    value = ask("tensor", failing, "fc.weight", "--step", 10, "--mode", "train", "--json").json["value"]
    assert np.allclose(value, np.linspace(-1, 1, 6).reshape(2, 3) + 10)
    assert len(ask("tensor", failing, "loss", "--last", 3, "--json").json["steps"]) == 3
    wrong = ask("tensor", failing, "gradient/fd")
    assert (wrong.code, "Did you mean gradient/fc?" in wrong.err) == (2, True)
    assert ask("tensor", failing, "loss", "--step", 11).code == 2


def test_values_that_are_not_finite_are_counted_and_valid_json(ask, tmp_path):
    made_run({0: {"w": [1.0, np.nan, np.inf]}}, tmp_path / "run")
    (payload,) = ask("inspect", tmp_path / "run", "--json").json["tensors"]
    assert (payload["latest"]["nan"], payload["latest"]["infinite"], payload["latest"]["mean"]) == (
        1,
        1,
        1.0,
    )
    assert ask("tensor", tmp_path / "run", "w", "--step", 0, "--json").json["value"] == [
        1.0,
        "NaN",
        "Infinity",
    ]


def test_a_tensor_that_is_damaged_is_reported_as_that(ask, failing):
    flip_a_bit(failing)
    answer = ask("tensor", failing, "loss")
    assert (answer.code, answer.out.count("damaged")) == (0, 1)
    steps = ask("tensor", failing, "loss", "--json").json["steps"]
    assert [step["step"] for step in steps if "problem" in step] == [20]
    assert ask("tensor", failing, "loss", "--step", 20).code == 3
    for index in (failing / "index").rglob("*.json"):
        if int(index.name[:12]) > 20:
            index.unlink()
    assert "damaged: " in ask("inspect", failing).out


def test_a_worker_that_is_not_there_is_reported_with_those_that_are(ask, failing, tmp_path):
    answer = ask("tensor", failing, "loss", "--worker", "worker_7")
    assert (answer.code, "worker_0" in answer.err) == (2, True)
    answer = ask("export", "npz", failing, "--worker", "worker_7", "-o", tmp_path / "out.npz")
    assert (answer.code, (tmp_path / "out.npz").exists()) == (2, False)


def test_a_run_with_nothing_but_a_loss_shows_its_curve_and_no_tensor_of_ours(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        for step in range(60):
            with hook.step():
                hook.record("loss", 1 / (step + 1))
    shown = ask("inspect", tmp_path / "run").out
    assert "loss 0.01667 at step 59\n" in shown
    assert "Losses of training\nloss  values  first     last   lowest  at step  curve\nloss      60" in shown
    assert "smdebug/" not in shown
