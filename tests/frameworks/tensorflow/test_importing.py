"""What Keras and TensorFlow log, imported."""

import keras
import numpy as np
import tensorflow as tf

from smdebug.importing import find_runs, import_run
from smdebug.mode_keys import ModeKeys
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.trials import create_trial


def test_the_table_of_a_csv_logger_becomes_a_run(tmp_path):
    keras.utils.set_random_seed(0)
    inputs = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    labels = (inputs[:, 0] > 0).astype("int32")
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    logger = keras.callbacks.CSVLogger(str(tmp_path / "training.csv"))
    history = model.fit(
        inputs, labels, epochs=6, validation_data=(inputs, labels), callbacks=[logger], verbose=0
    ).history
    (found,) = find_runs(tmp_path / "training.csv")
    done = import_run(found, tmp_path / "run")
    assert {name: str(target) for name, target in done.series.items()} == {
        "accuracy": "accuracy (train)",
        "loss": "loss (train)",
        "val_accuracy": "accuracy (eval)",
        "val_loss": "loss (eval)",
    }
    loss = create_trial(tmp_path / "run").series("loss")
    assert np.allclose(loss.of(ModeKeys.TRAIN).values, history["loss"])
    assert np.allclose(loss.of(ModeKeys.EVAL).values, history["val_loss"])
    assert diagnose(tmp_path / "run").issues == ()


def test_scalars_that_tensorflow_writes_become_a_run(tmp_path):
    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    )
    for folder, offset in (("train", 0.0), ("validation", 0.5)):
        with tf.summary.create_file_writer(str(tmp_path / "logs" / folder)).as_default():
            for step in range(10):
                tf.summary.write("epoch_loss", tf.constant(2.0 - step / 8 + offset), step, metadata)
    (found,) = find_runs(tmp_path / "logs")
    done = import_run(found, tmp_path / "run")
    assert {name: str(target) for name, target in done.series.items()} == {
        "train/epoch_loss": "loss (train)",
        "validation/epoch_loss": "loss (eval)",
    }
    loss = create_trial(tmp_path / "run").series("loss")
    assert loss.of(ModeKeys.TRAIN).values.tolist() == [2.0 - step / 8 for step in range(10)]
    assert loss.of(ModeKeys.EVAL).values.tolist() == [2.5 - step / 8 for step in range(10)]
