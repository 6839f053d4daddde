"""Where two runs diverge that were measured: the command and the page name the same step and tensor."""

import json

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.runs import compare
from smdebug.ui.comparisons import first_divergence
from smdebug.ui.following.reading import RunReader
from tests.cli.processes import in_a_shell


def train(place, changed_at=None, change=1e-3, **named):
    """Train two layers; from step `changed_at` on the gradients of `fc2` are larger by `change`."""
    random = np.random.default_rng(0)
    weights = {name: random.normal(size=(8, 4)).astype(np.float32) for name in ("fc1", "fc2")}
    with smdebug.Hook(place, **named) as hook:
        for at in range(40):
            noise = random.normal(size=(8, 4)).astype(np.float32)
            with hook.step(modes.TRAIN):
                hook.record("loss", float(np.square(weights["fc1"]).mean()))
                for name in weights:
                    is_changed = name == "fc2" and changed_at is not None and at >= changed_at
                    gradient = noise * (1 + change if is_changed else 1)
                    hook.record(f"gradient/{name}.weight", gradient)
                    hook.record(f"{name}.weight", weights[name])
                    weights[name] = weights[name] - np.float32(0.1) * gradient
    return str(place)


def read_through(place):
    reader = RunReader(place)
    while reader.advance(seconds=1):
        pass
    return reader


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return train(tmp_path_factory.mktemp("compared") / "base")


@pytest.mark.parametrize("changed_at", [0, 5, 14, 27])
def test_the_command_and_the_page_see_the_same_first_difference(base, tmp_path, changed_at):
    other = train(tmp_path / "other", changed_at)
    found = compare(base, other)
    shown = first_divergence(read_through(base), read_through(other))
    assert found.first is not None
    assert shown is not None
    assert (found.first.step, found.first.tensor, found.first.kind) == (
        shown["step"],
        shown["tensor"],
        shown["kind"],
    )
    saved = [step for step in [*range(10), 10, 20, 30] if step >= changed_at]
    assert (found.first.step, found.first.tensor) == (saved[0], "gradient/fc2.weight")


def test_equal_runs_are_the_same_and_all_statistics_were_compared(base, tmp_path):
    found = compare(base, train(tmp_path / "same"))
    assert (found.is_same, found.first) == (True, None)
    assert found.collections["gradients"].tensors == {"gradient/fc1.weight", "gradient/fc2.weight"}
    assert found.collections["parameters"].compared == 2 * 13  # steps 0 to 10, 20, 30


def test_a_tolerance_and_a_choice_of_tensors_hold_for_measured_ones(base, tmp_path):
    other = train(tmp_path / "other", 0)
    assert compare(base, other, rtol=0.5).number_different == 0
    assert compare(base, other, regex="fc1").number_different == 0
    assert compare(base, other, collection="gradients").first.kind == "gradients"
    assert set(compare(base, other, collection="gradients").collections) == {"gradients"}
    with pytest.raises(smdebug.exceptions.SMDebugValueError, match="nothing to compare"):
        compare(base, other, regex="no such tensor")


def test_tensors_of_one_run_alone_are_named(base, tmp_path):
    with smdebug.Hook(tmp_path / "other") as hook, hook.step(modes.TRAIN):
        hook.record("fc3.weight", np.ones((3, 3)))
    found = compare(base, str(tmp_path / "other"))
    assert found.tensors_only_in_other == ("fc3.weight",)
    assert "fc1.weight" in found.tensors_only_in_one


def test_the_command_prints_the_difference_and_both_losses(base, tmp_path):
    other = train(tmp_path / "other", 5)
    done = in_a_shell("compare", base, other)
    assert done.returncode == 1
    assert "The runs diverge at step 5, gradient/fc2.weight of worker_0: min is" in done.stdout
    assert "Loss of training" in done.stdout
    payload = json.loads(in_a_shell("compare", base, other, "--json").stdout)
    assert payload["first"]["tensor"] == "gradient/fc2.weight"
    assert payload["losses"][0]["last"] == payload["losses"][1]["last"]
    assert payload["collections"]["parameters"]["first_step"] > 5
