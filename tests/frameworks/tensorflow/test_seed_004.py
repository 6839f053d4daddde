"""The Keras blocks of the guide to training with a hook, with a model where it shows three dots."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from smdebug.trials import create_trial
from tests.seeds.blocks import BLOCKS

LAYERS = (
    "[tf.keras.layers.Input((4,)), tf.keras.layers.Dense(8, activation='relu'), "
    "tf.keras.layers.Dense(3, activation='softmax')]"
)


@pytest.mark.parametrize("block", ["004-03", "004-04"])
def test_the_keras_block_runs_as_it_stands(block, tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(64, 4)).astype("float32"), random.integers(0, 3, 64)
    args = SimpleNamespace(out_dir=str(tmp_path / "run"), epochs=1)
    names = {"tf": tf, "args": args, "x_train": x, "y_train": y, "x_test": x, "y_test": y}
    exec(BLOCKS[block].replace("[ ... ]", LAYERS), names)
    if block == "004-04":
        names["hook"].close()
        trial = create_trial(args.out_dir)
        assert trial.tensor_names(collection="losses")
        assert trial.steps()
