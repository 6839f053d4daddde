"""Keras scripts that know nothing of a hook."""

import smdebug.tensorflow as smd
from tests.frameworks.scripts import python

SCRIPT = """
import numpy as np
IMPORT
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, name="dense"), keras.layers.Dropout(0.2)])
model.compile("adam", "mse")
inputs = np.random.default_rng(0).random((20, 4)).astype("float32")
model.fit(inputs, inputs[:, :1] + np.zeros(5), batch_size=5, epochs=2, verbose=0)
model.evaluate(inputs, inputs[:, :1] + np.zeros(5), batch_size=10, verbose=0)
print([weights.tolist() for weights in model.get_weights()])
"""


def test_a_script_is_watched_and_prints_what_it_prints_alone(tmp_path):
    alone = None
    for number, imported in enumerate(("import keras", "from tensorflow import keras")):
        script = tmp_path / f"train{number}.py"
        script.write_text(SCRIPT.replace("IMPORT", imported))
        alone = alone or python(script, cwd=tmp_path)  # the other prints the same
        options = ["--out-dir", f"run{number}", "--collections", "weights,gradients", "--save-interval", 2]
        done = python("-m", "smdebug.run", *options, script, cwd=tmp_path)
        assert alone.returncode == done.returncode == 0, done.stderr[-3000:]
        assert done.stdout == alone.stdout
        trial = smd.create_trial(str(tmp_path / f"run{number}"))
        assert {0, 2, 4, 6} <= set(trial.steps(smd.modes.TRAIN))
        assert trial.steps(smd.modes.EVAL) == [0]
        assert {"loss", "dense/weights/dense/kernel:0", "gradients/dense/kernelGrad"} <= set(
            trial.tensor_names()
        )
