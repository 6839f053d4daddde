"""The original's notebook on tensor analysis, word for word, on runs that MXNet itself has written."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug.trials import create_trial
from tests.frameworks.scripts import ROOT, python
from tests.seeds.blocks import Story

SCRIPT = ROOT / "examples" / "tensor_analysis" / "mnist_mxnet.py"
HYPERPARAMETERS = {
    "bad": ["--initializer", "uniform", "--lr", 0.001],
    "good": ["--initializer", "he", "--lr", 0.01],
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, options in HYPERPARAMETERS.items():
        done = python(SCRIPT, "--out-dir", folder / name, *options, cwd=folder)
        assert done.returncode == 0, done.stderr[-3000:]
    return {name: str(folder / name) for name in HYPERPARAMETERS}


def test_its_blocks_find_what_they_look_for_by_its_names(paths):
    story = Story(path=paths["bad"])
    story.run("002-12", "002-09")
    assert story.run("002-10") == list(range(0, 200, 10))
    for block, names in (
        ("002-13", ["conv0_relu_output_0", "conv1_relu_output_0"]),
        ("002-16", ["conv0_relu_input_0", "conv1_relu_input_0"]),
        ("002-19", ["gradient/conv0_weight", "gradient/conv1_weight"]),
        ("002-24", ["conv0_weight", "conv1_weight"]),
        ("002-27", ["conv0_input_0", "conv1_input_0"]),
        ("002-30", ["conv0_output_0", "conv1_output_0"]),
    ):
        story.run(block)
        gathered = story["rule"].tensors
        assert set(names) <= set(gathered), block
        assert all(len(over_steps) == 20 for over_steps in gathered.values()), block


def test_its_comparison_tells_the_bad_network_from_the_good_one(paths):
    story = Story(path=paths["bad"])
    story.run("002-12", "002-09")
    story.names["path"] = paths["good"]
    story.run("002-38", "002-19", "002-39", "002-40", "002-41", "002-42")
    variances = {name: np.var(over_steps[0]) for name, over_steps in story["dict_gradients"].items()}
    assert (
        variances["gradient/conv1_weight_bad_hyperparameters"]
        > 100 * variances["gradient/conv1_weight_good_hyperparameters"]
    )
    story.run("002-16", "002-45", "002-46", "002-47", "002-48")
    assert len(story["dict_activation_inputs"]) == 4
    losses = {
        name: create_trial(path).tensor("softmaxcrossentropyloss0_output_0").value(190).mean()
        for name, path in paths.items()
    }
    assert losses["bad"] > 2 * losses["good"]
