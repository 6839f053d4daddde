"""`smdebug inspect` and `smdebug tensor` on a run that was measured."""

import json

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.numbers.rows import COLUMNS, sample_of
from smdebug.runs.tensors import every_name, watched_tensors
from smdebug.trials import create_trial
from tests.cli.processes import in_a_shell

WEIGHTS = [np.arange(200, dtype=np.float32) * step for step in range(12)]


@pytest.fixture
def run(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook:
        for step in range(12):
            with hook.step(modes.TRAIN):
                hook.record("loss", 12.0 - step)
                hook.record("scale", float(step))
                hook.record("fc.weight", WEIGHTS[step])
                hook.record("gradient/fc.weight", -WEIGHTS[step])
                hook.record("net_input_0", np.float32([step, 1]))
    return str(tmp_path / "run")


def answer(*words):
    done = in_a_shell(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_measured_tensors_and_the_scalars_of_every_step_are_summarised(run):
    shown = answer("inspect", run)
    lines = [line.split() for line in shown.splitlines()]
    assert "3 tensors measured, 1 saved" in shown
    assert ["gradient/fc.weight", "gradients", "11", "200", "float32", "-1990"] in [
        line[:6] for line in lines
    ]
    assert ["loss", "12", "12", "1", "1", "11"] in [line[:6] for line in lines]
    assert ["scale", "12", "0", "11"] in [line[:4] for line in lines]
    assert "smdebug/" not in shown
    measured = json.loads(answer("inspect", run, "--json"))["measured"]
    assert [tensor["name"] for tensor in measured] == ["gradient/fc.weight", "fc.weight", "net_input_0"]


def test_a_measured_tensor_is_shown_over_its_steps_with_the_words_of_the_page(run):
    shown = json.loads(answer("tensor", run, "fc.weight", "--json", "--last", "3"))
    steps = [at["step"] for at in shown["steps"]]
    last = create_trial(run).statistics(steps[-1]).row("fc.weight")
    assert {name: shown["steps"][-1][name] for name in COLUMNS} == pytest.approx(last)
    assert shown["steps"][-1]["shape"] == [200]
    assert shown["steps"][-1]["workers"] == ["worker_0"]
    table = answer("tensor", run, "fc.weight")
    assert "min   max   mean  abs_mean" in table
    assert table.splitlines()[-1].split()[0] == str(steps[-1])


def test_a_step_of_a_measured_tensor_has_its_statistics_and_a_sample(run):
    shown = json.loads(answer("tensor", run, "fc.weight", "--step", "4", "--json"))
    assert shown["max"] == 4 * 199
    assert shown["sample"] == sample_of(WEIGHTS[4], 128).tolist()
    assert "measured, not saved" in answer("tensor", run, "fc.weight", "--step", "4")


def test_a_scalar_has_its_value_at_every_step(run):
    shown = json.loads(answer("tensor", run, "loss", "--json"))
    assert [at["mean"] for at in shown["steps"]] == [12.0 - step for step in range(12)]
    assert (shown["loss"]["last"], shown["loss"]["best_step"]) == (1.0, 11)
    assert "loss of training: 1 at step 11\n" in answer("tensor", run, "loss")
    assert json.loads(answer("tensor", run, "loss", "--step", "7", "--json"))["value"] == 5.0


def test_an_unknown_name_suggests_measured_tensors_and_scalars(run):
    done = in_a_shell("tensor", run, "fc.wieght")
    assert done.returncode == 2
    assert "Did you mean fc.weight" in done.stderr
    assert "Did you mean scale" in in_a_shell("tensor", run, "scales").stderr


def test_names_of_measured_tensors_are_completed(run):
    shown = in_a_shell(
        _SMDEBUG_COMPLETE="bash_complete",
        COMP_WORDS=f"smdebug tensor {run} gradient",
        COMP_CWORD="3",
    ).stdout
    assert "gradient/fc.weight" in shown


def test_tensors_are_listed_by_kind_in_one_order(run, tmp_path):
    trial = create_trial(run)
    assert [(t.name, t.kind, t.is_saved, t.is_measured) for t in watched_tensors(trial)] == [
        ("gradient/fc.weight", "gradients", False, True),
        ("fc.weight", "parameters", False, True),
        ("net_input_0", "inputs", False, True),
        ("loss", "losses", True, False),
    ]
    assert every_name(trial) == ["gradient/fc.weight", "fc.weight", "net_input_0", "loss", "scale"]
    saved = tmp_path / "saved"
    with smdebug.Hook(saved, include_collections=["gradients", "weights"]) as hook, hook.step():
        hook.record_all({"fc_weight": [1.0], "gradient/fc": [1.0], "loss": 1.0})
    kinds = [tensor.kind for tensor in watched_tensors(create_trial(str(saved)))]
    assert kinds == ["gradients", "weights", "losses"]


def test_a_trial_lists_what_was_measured_and_keeps_saved_names_apart(run):
    trial = create_trial(run)
    assert trial.tensor_names() == ["loss"]
    assert trial.measured_tensors() == ["gradient/fc.weight", "fc.weight", "net_input_0"]
    assert trial.measured_tensors("parameters") == ["fc.weight"]
    assert trial.measured_tensors(regex="^gradient") == ["gradient/fc.weight"]
    assert trial.measured_tensors(collection="gradients") == ["gradient/fc.weight"]
