"""Tensor analysis using Amazon SageMaker Debugger: seven custom rules that collect tensors."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from PIL import Image

from tests.rules.made_runs import MadeRun
from tests.seeds.blocks import Story, runs
from tests.smdebug_rules.support import fires_at

STEPS = [0, 100, 200, 300]


def write_mnist(path, scale):
    """Write a run with the names that MXNet uses, saved every 100 steps."""
    run = MadeRun(path, collections={"all": [".*"]})
    rng = np.random.default_rng(3)
    for step in STEPS:
        tensors = {}
        for layer in ("conv0", "conv1"):
            inputs = rng.normal(size=(8, 4, 5, 5)).astype(np.float32) * scale
            tensors[f"{layer}_relu_input_0"] = inputs
            tensors[f"{layer}_relu_output_0"] = np.maximum(inputs, 0)
            tensors[f"{layer}_input_0"] = rng.normal(size=(8, 1, 5, 5)).astype(np.float32)
            tensors[f"{layer}_output_0"] = inputs
            tensors[f"{layer}_weight"] = rng.normal(size=(4, 1, 3, 3)).astype(np.float32)
            gradient = rng.normal(size=(4, 1, 3, 3)).astype(np.float32) * scale
            tensors[f"gradient/{layer}_weight"] = gradient
        run.save(step, tensors)
    run.end()
    return str(path)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnist")
    return write_mnist(folder / "bad", 100.0), write_mnist(folder / "good", 1.0)


@pytest.fixture
def notebook(paths):
    story = Story(path=paths[0])
    story.run("002-12", "002-09")
    story.names["path"] = paths[1]
    story.run("002-38")
    return story


@runs("002-02", "002-09", "002-10", "002-12", "002-33", "002-38")
def test_the_trials_are_opened_and_list_their_steps(paths):
    story = Story(path=paths[0])
    story.run("002-02", "002-12", "002-09")
    assert story.run("002-10") == STEPS
    story.names["path"] = paths[1]
    story.run("002-33", "002-38")
    assert story["trial2"].steps() == STEPS
    assert (story["bad_hyperparameters"]["lr"], story["hyperparameters"]["lr"]) == (0.001, 0.01)


@runs("002-11")
def test_a_rule_checks_for_small_activations(notebook):
    notebook.run("002-11")
    assert fires_at(notebook["MyCustomRule"](notebook["trial1"])) == []


RULES = {
    "002-13": ("relu_output", ["conv0_relu_output_0", "conv1_relu_output_0"]),
    "002-16": ("relu_input", ["conv0_relu_input_0", "conv1_relu_input_0"]),
    "002-19": ("gradient", ["gradient/conv0_weight", "gradient/conv1_weight"]),
    "002-24": ("weight", ["conv0_weight", "conv1_weight"]),
    "002-27": ("input", ["conv0_input_0", "conv1_input_0"]),
    "002-30": ("output", ["conv0_output_0", "conv1_output_0"]),
}


@runs(*RULES)
def test_each_rule_collects_its_tensors_over_all_steps(notebook, capsys):
    for block, (_, names) in RULES.items():
        notebook.run(block)
        gathered = notebook["rule"].tensors
        assert isinstance(gathered, OrderedDict)
        assert list(gathered) == names, block
        assert all(list(of_tensor) == STEPS for of_tensor in gathered.values()), block
    assert capsys.readouterr().out.count("This is expected behavior.") == len(RULES)


DRAWN = {
    "002-14": ("002-13", "activation_outputs"),
    "002-17": ("002-16", "activation_inputs"),
    "002-20": ("002-19", "gradients"),
    "002-25": ("002-24", "weights"),
    "002-28": ("002-27", "layer_inputs"),
    "002-31": ("002-30", "layer_outputs"),
}


@runs(*DRAWN)
def test_collected_tensors_are_drawn_with_a_frame_for_each_step(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for drawing, (rule, name) in DRAWN.items():
        notebook.run(rule, drawing)
        with Image.open(tmp_path / "images" / f"{name}.gif") as picture:
            assert picture.n_frames == len(STEPS), drawing


@runs("002-13", "002-16")
def test_activations_are_averaged_over_the_batch(notebook):
    for block, name in (("002-13", "conv0_relu_output_0"), ("002-16", "conv0_relu_input_0")):
        notebook.run(block)
        values = notebook["trial1"].tensor(name).value(100)
        assert np.array_equal(notebook["rule"].tensors[name][100], values.sum(axis=0) / values.shape[0])


@runs("002-22", "002-23")
def test_the_variance_of_gradients_is_compared_across_layers(notebook, capsys):
    notebook.run("002-22", "002-23")
    assert list(notebook["rule"].tensors) == STEPS
    assert all(len(extremes) == 2 for extremes in notebook["rule"].tensors.values())
    assert capsys.readouterr().out.count("variance of gradients: ") == len(STEPS)


@runs("002-39", "002-40", "002-41", "002-42", "002-43")
def test_gradients_of_two_runs_are_compared(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook.run("002-19", "002-39", "002-40", "002-41", "002-42", "002-43")
    assert (tmp_path / "images" / "gradients_comparison.gif").exists()
    compared = notebook["dict_gradients"]
    assert len(compared) == 4
    bad, good = (compared[f"gradient/conv0_weight_{which}_hyperparameters"][300] for which in ("bad", "good"))
    assert np.var(bad) > 1000 * np.var(good)


@runs("002-45", "002-46", "002-47", "002-48", "002-49")
def test_activation_inputs_of_two_runs_are_compared(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook.run("002-16", "002-45", "002-46", "002-47", "002-48", "002-49")
    assert (tmp_path / "images" / "activation_inputs_comparison.gif").exists()
    assert sorted(notebook["dict_activation_inputs"]) == [
        "conv0_relu_input_0_bad_hyperparameters",
        "conv0_relu_input_0_good_hyperparameters",
        "conv1_relu_input_0_bad_hyperparameters",
        "conv1_relu_input_0_good_hyperparameters",
    ]
