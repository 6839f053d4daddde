"""Under `smdebug.start` an evaluation of Keras has the number of the training step that it follows."""

import json

import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.runs.metrics import last_metrics
from smdebug.trials import Trial
from tests.frameworks.scripts import python

BATCHES, EPOCHS, EVALUATED = 6, 4, 3
SCRIPT = f"""
import json
import keras
import numpy as np
import smdebug

smdebug.start("run", system_metrics=False)
keras.utils.set_random_seed(0)
inputs = np.random.default_rng(0).normal(size=(48, 4)).astype("float32")
labels = (inputs.sum(axis=1) > 0).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, "sigmoid")])
model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy", metrics=["accuracy"])
held_out = inputs[:19], labels[::-1][:19]  # the last of its {EVALUATED} batches is smaller
history = model.fit(inputs, labels, batch_size=8, epochs={EPOCHS}, validation_data=held_out, verbose=0)
print(json.dumps(history.history))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trial, dict[str, list[float]]]:
    """A watched training, and what Keras says of it."""
    folder = tmp_path_factory.mktemp("numbered")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    done = python(script, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return smd.create_trial(str(folder / "run")), json.loads(done.stdout.splitlines()[-1])


def evaluations(trial: Trial, name: str) -> dict[int, float]:
    series = trial.series(name)
    pairs = zip(series.steps.tolist(), series.values.tolist(), series.modes, strict=True)
    return {step: value for step, value, mode in pairs if mode is smd.modes.EVAL}


def test_steps_are_those_of_the_training(trained):
    trial, _ = trained
    assert trial.steps()[-1] == BATCHES * EPOCHS - 1
    ends = [BATCHES * epoch - 1 for epoch in range(1, EPOCHS + 1)]
    assert list(evaluations(trial, "loss")) == list(evaluations(trial, "val_loss")) == ends


@pytest.mark.parametrize("name", ["loss", "accuracy"])
def test_an_evaluation_has_the_total_that_keras_prints(trained, name):
    trial, history = trained
    found = list(evaluations(trial, name).values())
    np.testing.assert_allclose(found, history[f"val_{name}"], rtol=1e-6)
    assert found == list(evaluations(trial, f"val_{name}").values())


def test_a_saved_evaluation_has_its_total(trained):
    trial, history = trained
    loss = trial.tensor("loss")
    step = loss.steps(mode=smd.modes.EVAL)[-1]
    assert loss.value(step, mode=smd.modes.EVAL) == pytest.approx(history["val_loss"][-1])


def test_the_last_metric_is_that_of_the_training(trained):
    trial, history = trained
    found = last_metrics(trial)
    assert found["accuracy"] == pytest.approx(history["accuracy"][-1])
    assert found["val_accuracy"] == pytest.approx(history["val_accuracy"][-1])
    assert found["accuracy"] != found["val_accuracy"]
